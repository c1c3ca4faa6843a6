-- Shared: one write to an audit lane. A lane's records are lists, one for each stretch of time; its head says who writes
-- it, how long it is, the tag of its last record, and for each list the first sequence and the tag before it.
--
-- `at` is the place of the lane's seven arguments in ARGV: writer, length, last tag, new last tag, `until`, when the list
-- expires, count of records. `first` is where the records begin.

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- 'free' to write, 'again' if this very write was done before, 'lost' if the lane is somebody else's or has moved on.
local function lane_state(head, at)
  local have = redis.call('HMGET', head, 'o', 'n', 't')
  local length, tag = have[2] or '0', have[3] or ''
  if have[1] ~= ARGV[at] then return 'lost' end
  if length == ARGV[at + 1] and tag == ARGV[at + 2] then return 'free' end
  local after = string.format('%.0f', tonumber(ARGV[at + 1]) + tonumber(ARGV[at + 6]))
  if length == after and tag == ARGV[at + 3] then return 'again' end
  return 'lost'
end

local function lane_write(head, list, at, first)
  local count = tonumber(ARGV[at + 6])
  -- The first thing to touch the list: if it is not one, nothing was written yet.
  local fresh = redis.call('LLEN', list) == 0
  for i = 0, count - 1 do
    redis.call('RPUSH', list, ARGV[first + i])
  end
  if fresh then
    redis.call('PEXPIREAT', list, ARGV[at + 5])
    local now = now_ms()
    for _, field in ipairs(redis.call('HKEYS', head)) do
      local past = string.match(field, '^s(%d+)$')
      if past and tonumber(past) + 86400000 < now then redis.call('HDEL', head, field) end
    end
    local start = string.format('%.0f', tonumber(ARGV[at + 1]) + 1)
    redis.call('HSET', head, 's' .. ARGV[at + 4], start .. ':' .. ARGV[at + 2])
  end
  local length = string.format('%.0f', tonumber(ARGV[at + 1]) + count)
  redis.call('HSET', head, 'n', length, 't', ARGV[at + 3])
end
