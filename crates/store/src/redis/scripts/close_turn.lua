-- Takes ARGV[1] out of a set of open turns, if it is in it as it was seen (ARGV[2]). KEYS: the set.
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if score and tonumber(score) == tonumber(ARGV[2]) then return redis.call('ZREM', KEYS[1], ARGV[1]) end
return 0
