-- Takes a member out of an index. KEYS: index [locator]. ARGV: member.
redis.call('ZREM', KEYS[1], ARGV[1])
local last = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
if last and last ~= 'inf' then redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', tonumber(last))) end
if KEYS[2] then redis.call('DEL', KEYS[2]) end
return 1
