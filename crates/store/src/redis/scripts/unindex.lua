-- Takes a member out of an index, unless its session is there: it may have been made anew meanwhile. In a Cluster the session
-- is elsewhere, and whoever calls this looks afterwards. KEYS: index, then locator and session where they are given.
-- ARGV: member, which key is the locator, which is the session; 0 for none.
local locator, session = KEYS[tonumber(ARGV[2])], KEYS[tonumber(ARGV[3])]
if session and redis.call('EXISTS', session) == 1 then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
local last = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
if last and last ~= 'inf' then redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', tonumber(last))) end
if locator then redis.call('DEL', locator) end
return 1
