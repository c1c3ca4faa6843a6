-- Removes a context with its records; gives the session of each record. KEYS: context.
local scopes, all = {}, redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if #all[i] > 1 then scopes[#scopes + 1] = string.sub(all[i + 1], 1, 16) end
end
redis.call('DEL', KEYS[1])
return scopes
