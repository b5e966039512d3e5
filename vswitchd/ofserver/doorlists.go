package ofserver

import (
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// driven is the switch that controllers drive. Its lists say whether the switch has answered.
type driven struct{ door.Switch }

// failures counts what the switch did not answer, if it counts that (door.Client).
func (d driven) failures() uint64 {
	if c, ok := d.Switch.(interface{ Failures() uint64 }); ok {
		return c.Failures()
	}
	return 0
}

// listed asks the switch for a list. The error is that it did not answer.
func listed[T any](d driven, ask func() []T) ([]T, error) {
	before := d.failures()
	all := ask()
	if d.failures() != before {
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
