-- Makes ARGV[2] the owner of the open turn that ARGV[1] had. KEYS: session.
local owner = redis.call('HGET', KEYS[1], 'o')
if owner == ARGV[2] then return 1 end
if owner ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'o', ARGV[2])
return 1
