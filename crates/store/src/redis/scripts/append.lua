-- One write to a session: all of it, or nothing.
-- KEYS: session; with audit records also lane head and lane list; then, if it is given, a set of open turns. In a Cluster
--       the session alone.
-- ARGV: 1 expected version, 2 key id, 3 names, 4 expiry or '', 5 owner or '', 6 stamp, 7 count of entries,
--       8 what the snapshot covers or '', 9 snapshot, 10-16 the lane's seven, 17 when the set of open turns expires, then
--       entries, then audit records.
local session, notes = KEYS[1], tonumber(ARGV[16])
local open = KEYS[notes > 0 and 4 or 2]
local expected, count, first = tonumber(ARGV[1]), tonumber(ARGV[7]), 18
local have = redis.call('HMGET', session, 'v', 'k', 'w', 'x')
local version = have[1] and (tonumber(have[1]) or -1) or 0

-- A reply that was lost: the caller asks again, and it was done.
if have[1] and have[2] == ARGV[2] and have[3] == ARGV[6] and version == expected + count then return 'again' end
if version ~= expected or (have[1] and have[2] ~= ARGV[2]) then return 'conflict' end
if notes > 0 then
  if lane_state(KEYS[2], 10) ~= 'free' then return 'lost' end
  lane_write(KEYS[2], KEYS[3], 10, first + count)
end

local function name(seq) return string.format('%.0f', seq) end
local fields = { 'v', name(expected + count), 'w', ARGV[6], 'x', ARGV[4], 'o', ARGV[5] }
local function put(field, value)
  fields[#fields + 1] = field
  fields[#fields + 1] = value
end
local covers = -1
if ARGV[8] ~= '' then
  covers = tonumber(ARGV[8])
  for seq = covers + 1, expected do
    local kept = redis.call('HGET', session, name(seq))
    if kept then put(name(seq), kept) end
  end
  redis.call('DEL', session)
  put('c', ARGV[8])
  put('f', ARGV[9])
end
if not have[1] or covers >= 0 then
  put('k', ARGV[2])
  put('s', ARGV[3])
end
for i = 1, count do
  if expected + i > covers then put(name(expected + i), ARGV[first + i - 1]) end
end
for i = 1, #fields, 1000 do
  redis.call('HSET', session, unpack(fields, i, math.min(i + 999, #fields)))
end
if ARGV[4] ~= '' then
  redis.call('PEXPIREAT', session, ARGV[4])
elseif have[1] then
  redis.call('PERSIST', session)
end

if open then
  local scope = string.sub(ARGV[3], 1, 16)
  if ARGV[5] ~= '' then
    redis.call('ZADD', open, ARGV[17], scope)
    redis.call('PEXPIREAT', open, ARGV[17])
  else
    redis.call('ZREM', open, scope)
  end
end
-- It had a lifetime and has none now: what finds it must last as well.
if ARGV[4] == '' and have[4] and have[4] ~= '' then return 'lasts' end
return 'done'
