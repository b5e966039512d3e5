package agent

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
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
// A note is its length, four bytes in network order, and JSON. Descriptors come
// with its first byte (unix(7), SCM_RIGHTS).

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

// maxNote bounds a note. maxDescriptors bounds the descriptors of one note, which are a
// port's; the kernel passes at most so many with one message (SCM_MAX_FD).
const (
	maxNote        = 64 << 20
	maxDescriptors = 253
)

// talk is a connection between two agents.
type talk struct{ *net.UnixConn }

// say says something, and hands descriptors over; they stay open here.
func (t talk) say(n note, fds ...int) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	sent, _, err := t.WriteMsgUnix(b, rights, nil)
	if err == nil && sent < len(b) {
		_, err = t.Write(b[sent:])
	}
	return err
}

// hear waits for something to be said, for so long at most. The descriptors are
// the caller's. A no is an error.
func (t talk) hear(patience time.Duration, what ...string) (n note, fds []int, err error) {
	if err := t.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return n, nil, err
	}
	if n, fds, err = t.next(); err == nil {
		err = n.is(what)
	}
	if err != nil {
		closeDescriptors(fds)
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

// next reads one note.
func (t talk) next() (n note, fds []int, err error) {
	var head [4]byte
	rights := make([]byte, unix.CmsgSpace(4*maxDescriptors))
	got, m, flags, _, err := t.ReadMsgUnix(head[:], rights)
	if err == nil && got == 0 {
		err = io.EOF
	}
	if err == nil {
		fds, err = descriptors(rights[:m])
	}
	if err == nil && flags&unix.MSG_CTRUNC != 0 {
		err = errors.New("too many descriptors at once")
	}
	if err == nil {
		_, err = io.ReadFull(t, head[got:])
	}
	length := binary.BigEndian.Uint32(head[:])
	if err == nil && length > maxNote {
		err = fmt.Errorf("a note of %d bytes", length)
	}
	if err != nil {
		return n, fds, err
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(t, text); err != nil {
		return n, fds, err
	}
	return n, fds, json.Unmarshal(text, &n)
}

// descriptors are those of a control message, closed for programs that this one
// starts.
func descriptors(control []byte) (fds []int, err error) {
	all, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		some, err := unix.ParseUnixRights(&m)
		if err != nil {
			return fds, err
		}
		fds = append(fds, some...)
	}
	return fds, nil
}

func closeDescriptors(fds []int) {
	for _, fd := range fds {
		os.NewFile(uintptr(fd), "").Close()
	}
}
