-- Puts a member into an index whose scores are moments of expiry ('inf' for never). What is over goes on the way, and the
-- index itself goes with its last member. KEYS: index [locator]. ARGV: score, member [locator's value].
local time = redis.call('TIME')
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%.0f', time[1] * 1000))
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
local last = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
if last == 'inf' then
  redis.call('PERSIST', KEYS[1])
elseif last then
  redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', tonumber(last)))
end
if KEYS[2] then
  redis.call('SET', KEYS[2], ARGV[3])
  if ARGV[1] ~= 'inf' then redis.call('PEXPIREAT', KEYS[2], ARGV[1]) end
end
return 1
