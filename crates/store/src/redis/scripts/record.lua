-- Audit records of their own. KEYS: lane head, lane list. ARGV: the lane's seven, then the records.
local state = lane_state(KEYS[1], 1)
if state == 'free' then
  lane_write(KEYS[1], KEYS[2], 1, 8)
  return 'done'
end
return state
