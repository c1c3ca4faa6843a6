-- Makes ARGV[2] the writer of a lane that ARGV[1] had ('' for nobody). KEYS: lane head.
local writer = redis.call('HGET', KEYS[1], 'o') or ''
if writer ~= ARGV[1] and writer ~= ARGV[2] then return false end
redis.call('HSET', KEYS[1], 'o', ARGV[2])
return redis.call('HMGET', KEYS[1], 'n', 't')
