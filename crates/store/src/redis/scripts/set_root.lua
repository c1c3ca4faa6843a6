-- Changes the root of a shard, if it is still ARGV[1] ('' for none). KEYS: shard. ARGV: from, to.
local root = redis.call('HGET', KEYS[1], 'root') or ''
if root ~= ARGV[1] and root ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'root', ARGV[2])
return 1
