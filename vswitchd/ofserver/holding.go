package ofserver

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// holdTable is a table that no controller can use, so it stays empty. Packets that enter there are
// dropped.
const holdTable = openflow.Tables

// Hold makes the switch drop all packets, or ends that (other_config:flow-restore-wait). Entries,
// names and the controllers' connections stay.
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
