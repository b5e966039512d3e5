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
	// Failures counts what the switch did not answer.
	Failures() uint64
}

// driven is the switch that controllers drive. Its lists say whether the switch has answered.
type driven struct{ Switch }

// listed asks the switch for a list. The error is that it did not answer.
func listed[T any](d driven, ask func() []T) ([]T, error) {
	before := d.Failures()
	all := ask()
	if d.Failures() != before {
		return nil, openflow.Fail(openflow.FlowModUnknown, "the switch does not answer")
	}
	return all, nil
}

// hasPort is the error of a number that no port has.
func (d driven) hasPort(no uint32, kind openflow.ErrorKind) error {
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
