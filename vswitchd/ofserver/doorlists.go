package ofserver

import (
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// Switch is a switch in another process: a door.Client.
type Switch interface {
	door.Switch
	// ApplyText is Apply for a bundle that is text already.
	ApplyText(*door.BundleText) error
	// Failures counts requests that the switch did not answer (door.Client.Failures).
	Failures() uint64
}

// drivenSwitch is the switch that controllers drive.
type drivenSwitch struct{ Switch }

// listed returns a list of the switch, or an error if the switch did not answer.
func listed[T any](d drivenSwitch, ask func() []T) ([]T, error) {
	before := d.Failures()
	all := ask()
	if d.Failures() != before {
		return nil, openflow.Fail(openflow.FlowModUnknown, "the switch does not answer")
	}
	return all, nil
}

// checkPort returns an error of a kind if no port has the number.
func (d drivenSwitch) checkPort(no uint32, kind openflow.ErrorKind) error {
	all, err := listed(d, d.Ports)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].No == no {
			return nil
		}
	}
	return openflow.Fail(kind, "there is no port %d", no)
}
