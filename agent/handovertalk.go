package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/antrail/antrail/door"
)

// What two agents say to one another when one takes over from the other, over the
// socket of the API after an HTTP upgrade:
//
//	heir                              the agent that runs
//	hello, with its configuration
//	and the layout of AF_XDP's     →  changes nothing from here on, and keeps its entries
//	                               ←  port, with descriptors; each of them
//	                               ←  arena, with its descriptor
//	builds its switch and ports
//	ready, with ports that it
//	opens itself                   →  closes those, and stops moving packets
//	                               ←  stopped, with what packets learned last
//	takes the connections over, and moves packets
//	running                        →  ends, and takes nothing back
//
// Either may say no, with a reason, or hang up. Until it is ready nothing has
// happened, and the agent that runs goes on. After that it starts again, as it
// would have if it had been killed.
//
// A note is a message with descriptors (door.Talk).

// handOverProtocol names all this; its number changes with what is said.
const handOverProtocol = "antrail-hand-over/2"

// note is one thing that is said.
type note struct {
	Say string
	// Why is the reason of sayNo.
	Why string `json:",omitempty"`
	// Config is the identity of the heir's configuration, with sayHello.
	Config string `json:",omitempty"`
	// Layout is that of ports on AF_XDP which the heir knows (afxdp.Layout), with
	// sayHello; an heir that says none opens them itself.
	Layout int `json:",omitempty"`
	// Declined are links whose ports the heir opens itself, with sayReady.
	Declined []string `json:",omitempty"`
	// Name and Driver are those of a port's link, with sayPort.
	Name   string `json:",omitempty"`
	Driver string `json:",omitempty"`
	// Still is when the switch was told to stop, by bootClock, with sayStopped.
	Still int64 `json:",omitempty"`
	// Learned are lines of a flow snapshot, with sayStopped.
	Learned []string `json:",omitempty"`
}

const (
	sayNo      = "no"
	sayHello   = "hello"
	sayPort    = "port"
	sayArena   = "arena"
	sayReady   = "ready"
	sayStopped = "stopped"
	sayRunning = "running"
)

// talk is a connection between two agents.
type talk struct{ door.Talk }

// say says something, and hands descriptors over; they stay open here.
func (t talk) say(n note, fds ...int) error { return t.Say(n, fds...) }

// hear waits for something to be said, for so long at most. The descriptors are
// the caller's. A no is an error.
func (t talk) hear(patience time.Duration, what ...string) (n note, fds []int, err error) {
	if err := t.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return n, nil, err
	}
	if fds, err = t.Hear(&n); err == nil {
		err = n.is(what)
	}
	if err != nil {
		door.CloseDescriptors(fds)
		return n, nil, err
	}
	return n, fds, nil
}

// is says why a note is none of what is expected.
func (n *note) is(what []string) error {
	for _, w := range what {
		if n.Say == w {
			return nil
		}
	}
	if n.Say == sayNo {
		return errors.New(n.Why)
	}
	return fmt.Errorf("the other agent says %.20q, and is expected to say %q", n.Say, what)
}
