-- Shared: puts a conversation into an index. Its score is only ever lowered here, so that it is never later than the last
-- use; whoever looks for what is idle raises it.
local function index_context(index, used_at, member)
  local have = redis.call('ZSCORE', index, member)
  if not have or tonumber(used_at) < tonumber(have) then redis.call('ZADD', index, used_at, member) end
end

