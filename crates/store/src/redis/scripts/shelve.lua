-- Makes room for an entry of ARGV[2] bytes: 1 if somebody waits for it and it fits. KEYS: index. ARGV: field, bytes, most entries,
-- most bytes, lifetime in milliseconds.
local entries, bytes, waited = 0, tonumber(ARGV[2]), false
local all = redis.call('HGETALL', KEYS[1])
for at = 1, #all, 2 do
  if string.sub(all[at], 1, 2) == 'd:' then
    waited = true
  elseif all[at] ~= ARGV[1] then
    entries = entries + 1
    bytes = bytes + (tonumber(all[at + 1]) or 0)
  end
end
if not waited or entries >= tonumber(ARGV[3]) or bytes > tonumber(ARGV[4]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1
