package ofserver

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// holdTable is a table that no controller can reach, so it stays empty. Packets that enter at
// it are dropped.
const holdTable = openflow.Tables

// Hold has all packets dropped while a controller installs its entries, or ends that. Entries,
// names and connections of controllers stay.
func (s *Server) Hold(on bool) error {
	s.changes.Lock()
	defer s.changes.Unlock()
	names, first := s.Switch.Names(), uint8(0)
	if on {
		first = holdTable
	}
	if now := s.Switch.First(); on == (now == holdTable) {
		return nil
	}
	if names == nil {
		names = flow.NewNames()
	}
	return s.Switch.Apply(&flow.Bundle{Names: names, First: first})
}
