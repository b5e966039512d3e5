package switchd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime"
	"syscall"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/ports/afxdp"
	"github.com/antrail/antrail/ports/offload"
)

// A switch process that replaces a running one (handover.go). It builds its switch and ports from
// the given state while the other still moves packets. No packet moves from the moment when the
// other stops until this one has found the connections. Both processes have the memory of the
// connections mapped.

// predecessor is the connection to the previous switch, with the state that it has given.
type predecessor struct {
	door.MessageConn
	Inheritance
	offload     []int // of a confined switch: programs and maps
	connections *os.File
	kept        []byte
	held        map[string]door.Held
}

// dialSwitch connects to the switch at a socket; nil if none runs.
func dialSwitch(socket string) (*net.UnixConn, error) {
	conn, err := net.DialTimeout("unix", socket, wordTime)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

// requestHandOver asks the previous switch to hand over; nil if none runs.
func (p *Process) requestHandOver() (*predecessor, error) {
	conn := p.predecessor
	if conn == nil {
		var err error
		if conn, err = dialSwitch(p.Socket); conn == nil {
			return nil, err
		}
	}
	b := &predecessor{MessageConn: door.MessageConn{UnixConn: conn}, held: map[string]door.Held{}}
	err := door.Upgrade(conn, "/v1/take-over", handOverProtocol, nil)
	if err == nil {
		err = b.receive(handOverMessage{Say: sayHello, Layout: afxdp.Layout, Connections: cmp.Or(p.Settings.Conntrack.Max, conntrack.DefaultMax()), Confined: p.Confined})
	}
	if err != nil {
		b.close()
		return nil, fmt.Errorf("the switch at %s does not hand over: %w", p.Socket, err)
	}
	return b, nil
}

// receive sends hello and receives the state.
func (b *predecessor) receive(hello handOverMessage) error {
	if err := b.Send(hello); err != nil {
		return err
	}
	for {
		n, fds, err := receiveOneOf(b.MessageConn, prepareTime, sayOffload, sayPort, sayConnections)
		switch {
		case err != nil:
			return err
		case n.Say == sayOffload && n.Layout != offload.Layout:
			door.CloseDescriptors(fds)
			return fmt.Errorf("its maps of the offload have layout %d, want %d", n.Layout, offload.Layout)
		case n.Say == sayOffload:
			b.offload = fds
		case n.Say == sayPort && n.Driver == driverHeld:
			b.held[n.Link] = door.Held{Value: []byte(n.Why), Descriptors: fds}
		case n.Say == sayPort:
			b.Add(n.Driver, n.Link, fds)
		case len(fds) != 1:
			door.CloseDescriptors(fds)
			return fmt.Errorf("the connections came with %d descriptors, want 1", len(fds))
		default:
			b.connections, b.kept = os.NewFile(uintptr(fds[0]), conntrackFile), []byte(n.Kept)
			return nil
		}
	}
}

// takeHeld takes over the descriptors that the predecessor held for controllers.
func (p *Process) takeHeld(b *predecessor) (err error) {
	for name, h := range b.held {
		err = errors.Join(err, p.server.Hold(name, h))
		delete(b.held, name)
	}
	return err
}

// close closes the connection and everything that was not taken over. The connections' file
// belongs to the switch once it is open.
func (b *predecessor) close() {
	b.Inheritance.Close()
	door.CloseDescriptors(b.offload)
	b.offload = nil
	for name, h := range b.held {
		door.CloseDescriptors(h.Descriptors)
		delete(b.held, name)
	}
	b.MessageConn.Close()
}

// awaitStop reports to the predecessor that this switch is ready. It returns when the predecessor
// has stopped and packets may move.
func (p *Process) awaitStop(b *predecessor) error {
	runtime.GC() // the messages are garbage; collecting it later would take processors while no packet moves
	if err := b.Send(handOverMessage{Say: sayReady, Declined: b.Declined()}); err != nil {
		return err
	}
	n, _, err := receiveOneOf(b.MessageConn, prepareTime, sayStopped)
	if err != nil {
		return err
	}
	p.stoppedAt = n.Still
	p.sw.Table().TakeOver()
	if len(n.Learned) > 0 {
		err = p.sw.Relearn(n.Learned)
	}
	return errors.Join(err, b.BeginTraffic())
}

// confirmTakeOver reports to the predecessor that packets move again, and does the remaining work
// of ports.
func (p *Process) confirmTakeOver(b *predecessor) {
	pause := p.sw.Clock() - p.stoppedAt
	p.server.PauseNS = pause
	if err := b.Send(handOverMessage{Say: sayRunning}); err != nil {
		p.Log.Warn("the previous switch has ended before it was told that packets move", "error", err)
	}
	b.close()
	for _, err := range b.After() {
		p.Log.Warn("a port continues unchanged from the previous switch", "error", err)
	}
	p.Log.Info("taken over from the previous switch", "pauseNS", pause, "restoreNS", p.sw.Table().Stats().Restored.Took.Nanoseconds(), "connections", p.sw.Table().Stats().Entries)
}
