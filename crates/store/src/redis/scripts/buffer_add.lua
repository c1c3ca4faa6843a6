-- KEYS: the buffer, who follows it. ARGV: its first entry, how many entries are behind that, its lifetime in ms, what their
-- channels begin with, the buffer's name, entries.
-- A buffer with another first entry is somebody else's, or was removed: nothing is added. With none behind it yet, it is begun.
if redis.call('LINDEX', KEYS[1], 0) ~= ARGV[1] then
  if ARGV[2] ~= '0' then return 0 end
  redis.call('DEL', KEYS[1])
  redis.call('RPUSH', KEYS[1], ARGV[1])
end
-- Longer, if the same call was made before and its reply was lost.
if redis.call('LLEN', KEYS[1]) == tonumber(ARGV[2]) + 1 then
  for at = 6, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[at]) end
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
for _, ear in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  -- Who may not publish leaves it to followers to look by themselves.
  redis.pcall('PUBLISH', ARGV[4] .. ear, ARGV[5])
end
return 1
