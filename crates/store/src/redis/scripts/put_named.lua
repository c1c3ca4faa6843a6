-- Replaces a named key, if it is still ARGV[2] ('' for none). KEYS: named keys. ARGV: name, from, root, to.
local have = redis.call('HGET', KEYS[1], ARGV[1]) or ''
local sealed = string.sub(have, 9)
if sealed == ARGV[4] then return 1 end
if sealed ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3] .. ARGV[4])
return 1
