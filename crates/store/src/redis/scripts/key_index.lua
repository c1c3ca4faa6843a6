-- Shared: the index of a shard of the keyring. A member is root and tag; its score is the moment of expiry, 'inf' for never.
local GRACE = 60000

local function key_index_expiry(index)
  local last = redis.call('ZREVRANGE', index, 0, 0, 'WITHSCORES')[2]
  if last == 'inf' then
    redis.call('PERSIST', index)
  elseif last then
    redis.call('PEXPIREAT', index, string.format('%.0f', tonumber(last) + GRACE))
  end
end

local function key_index(index, score, member)
  local time = redis.call('TIME')
  redis.call('ZREMRANGEBYSCORE', index, '-inf', '(' .. string.format('%.0f', time[1] * 1000 - GRACE))
  redis.call('ZADD', index, score, member)
  key_index_expiry(index)
end
