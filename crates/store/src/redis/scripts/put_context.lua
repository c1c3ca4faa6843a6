-- One write of a context: all of it, or nothing.
-- KEYS: context; with audit records also lane head and lane list; then indexes. In a Cluster the context alone.
-- ARGV: 1 expected version, 2 key id, 3 content, 4 last use, 5 since when it is out of use or '', 6 field of a record or '',
--       7 the record, 8 session or turn whose records go or '', 9 conversation, 10 expiry or '', 11-17 the lane's seven, then
--       audit records.
local context, notes = KEYS[1], tonumber(ARGV[17])
local expected = tonumber(ARGV[1])
local have = redis.call('HMGET', context, 'v', 'k', 'd', 'u', 'a')
local version = have[1] and (tonumber(have[1]) or -1) or 0

local forgotten = {}
if ARGV[8] ~= '' then
  local all = redis.call('HGETALL', context)
  for i = 1, #all, 2 do
    local is_record = #all[i] > 1 and all[i] ~= ARGV[6]
    local is_theirs = string.sub(all[i + 1], 1, 16) == ARGV[8] or all[i] == 'c' .. ARGV[8]
    if is_record and is_theirs then forgotten[#forgotten + 1] = all[i] end
  end
end

-- A reply that was lost: the caller asks again, and it was done.
if have[1] and version == expected + 1 and #forgotten == 0
  and have[2] == ARGV[2] and have[3] == ARGV[3] and have[4] == ARGV[4] and have[5] == ARGV[5]
  and (ARGV[6] == '' or redis.call('HGET', context, ARGV[6]) == ARGV[7]) then return 'again' end
if version ~= expected or (have[1] and have[2] ~= ARGV[2]) then return 'conflict' end
-- What the turn named is in it already.
if ARGV[6] ~= '' and redis.call('HEXISTS', context, ARGV[6]) == 1 then return 'known' end
if notes > 0 and lane_state(KEYS[2], 11) ~= 'free' then return 'lost' end

-- What finds it comes first: if that fails, nothing was written.
for i = notes > 0 and 4 or 2, #KEYS do index_context(KEYS[i], ARGV[4], ARGV[9], ARGV[10]) end
if notes > 0 then lane_write(KEYS[2], KEYS[3], 11, 18) end
for _, field in ipairs(forgotten) do redis.call('HDEL', context, field) end
redis.call('HSET', context, 'v', string.format('%.0f', expected + 1), 'k', ARGV[2], 'd', ARGV[3], 'u', ARGV[4], 'a', ARGV[5])
if ARGV[6] ~= '' then redis.call('HSET', context, ARGV[6], ARGV[7]) end
if ARGV[10] ~= '' then redis.call('PEXPIREAT', context, ARGV[10]) else redis.call('PERSIST', context) end
return 'done'
