package bridge

import (
	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
)

// none is an empty column.
var none = datum.Datum{}

func textOrNone(s string) datum.Datum {
	if s == "" {
		return none
	}
	return datum.One(datum.Text(s))
}

func numberOrNone(n int64) datum.Datum {
	if n == 0 {
		return none
	}
	return datum.One(datum.Int(n))
}

func upOrDown(up bool) datum.Datum {
	if up {
		return textOrNone("up")
	}
	return textOrNone("down")
}

// columns are the columns of Interface with the state of a port.
func (s *PortState) columns() map[string]datum.Datum {
	return map[string]datum.Datum{
		"mac_in_use": textOrNone(s.MAC), "mtu": numberOrNone(int64(s.MTU)), "ifindex": datum.One(datum.Int(int64(s.IfIndex))),
		"admin_state": upOrDown(s.AdminUp), "link_state": upOrDown(s.LinkUp),
		"link_speed": numberOrNone(s.Speed), "duplex": textOrNone(s.Duplex), "link_resets": datum.One(datum.Int(s.LinkResets)),
		"statistics": datum.IntMap(s.Statistics), "status": datum.TextMap(s.Status),
	}
}

// noState are the columns of an Interface without a port.
func noState() map[string]datum.Datum {
	return map[string]datum.Datum{
		"mac_in_use": none, "mtu": none, "ifindex": none, "admin_state": none, "link_state": none,
		"link_speed": none, "duplex": none, "link_resets": none, "statistics": none, "status": none,
	}
}

// columns are the columns of Controller with the state of its connection.
func (s *ControllerState) columns() map[string]datum.Datum {
	return map[string]datum.Datum{
		"is_connected": datum.One(datum.Bool(s.Connected)), "role": textOrNone(s.Role), "status": datum.TextMap(s.Status),
	}
}
