-- Shared: puts a conversation into an index. Its score is only ever lowered here, so that it is never later than the last
-- use; whoever looks for what is idle raises it. The index lasts as long as anything that was ever put into it.
local function index_context(index, used_at, member, till)
  local have, left = redis.call('ZSCORE', index, member), redis.call('PTTL', index)
  if not have or tonumber(used_at) < tonumber(have) then redis.call('ZADD', index, used_at, member) end
  if till == '' then
    redis.call('PERSIST', index)
  elseif left == -2 then
    redis.call('PEXPIREAT', index, till)
  elseif left >= 0 then
    local time = redis.call('TIME')
    local ends = time[1] * 1000 + math.floor(time[2] / 1000) + left
    if ends < tonumber(till) then redis.call('PEXPIREAT', index, till) end
  end
end

