package appctl

import (
	"errors"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
)

// Switch has the commands of a switch. Any goroutine may run them.
type Switch struct {
	door.Switch
	// Bridge is the name of the bridge; "" if there is none.
	Bridge func() string
}

var errNoBridge = errors.New("no such bridge")

// portNames are the names of the ports.
func (s *Switch) portNames() *flow.Names {
	n := flow.NewNames()
	for _, p := range s.Switch.Ports() {
		n.SetPort(p.No, p.Name)
	}
	return n
}
