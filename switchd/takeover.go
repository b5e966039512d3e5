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

// A switch process that takes the place of another that runs (handover.go). It builds its
// switch and ports from what it is given, while the other moves packets. No packet moves
// between the moment in which the other has stopped and the one in which this one has found
// the connections, which lie in memory that both have mapped.

// predecessor is what the switch before has given.
type predecessor struct {
	door.Talk
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

// meet asks the switch before to hand over; nil if none runs.
func (p *Process) meet() (*predecessor, error) {
	conn := p.before
	if conn == nil {
		var err error
		if conn, err = dialSwitch(p.Socket); conn == nil {
			return nil, err
		}
	}
	b := &predecessor{Talk: door.Talk{UnixConn: conn}, held: map[string]door.Held{}}
	err := door.Upgrade(conn, "/v1/take-over", handOverProtocol, nil)
	if err == nil {
		err = b.receive(note{Say: sayHello, Layout: afxdp.Layout, Connections: cmp.Or(p.Settings.Conntrack.Max, conntrack.DefaultMax()), Confined: p.Confined})
	}
	if err != nil {
		b.close()
		return nil, fmt.Errorf("the switch at %s does not hand over: %w", p.Socket, err)
	}
	return b, nil
}

// receive says hello and takes what is given.
func (b *predecessor) receive(hello note) error {
	if err := b.Say(hello); err != nil {
		return err
	}
	for {
		n, fds, err := hear(b.Talk, prepareTime, sayOffload, sayPort, sayConnections)
		switch {
		case err != nil:
			return err
		case n.Say == sayOffload && n.Layout != offload.Layout:
			door.CloseDescriptors(fds)
			return fmt.Errorf("its maps of the offload have layout %d, and here it is %d", n.Layout, offload.Layout)
		case n.Say == sayOffload:
			b.offload = fds
		case n.Say == sayPort && n.Driver == driverHeld:
			b.held[n.Link] = door.Held{Value: []byte(n.Why), Descriptors: fds}
		case n.Say == sayPort:
			b.Add(n.Driver, n.Link, fds)
		case len(fds) != 1:
			door.CloseDescriptors(fds)
			return fmt.Errorf("the connections came with %d descriptors", len(fds))
		default:
			b.connections, b.kept = os.NewFile(uintptr(fds[0]), conntrackFile), []byte(n.Kept)
			return nil
		}
	}
}

// takeHeld holds for controllers what the switch before held.
func (p *Process) takeHeld(b *predecessor) (err error) {
	for name, h := range b.held {
		err = errors.Join(err, p.server.Hold(name, h))
		delete(b.held, name)
	}
	return err
}

// close ends the talk and closes what nobody has taken. The connections' file is the
// switch's, once that was opened.
func (b *predecessor) close() {
	b.Inheritance.Close()
	door.CloseDescriptors(b.offload)
	b.offload = nil
	for name, h := range b.held {
		door.CloseDescriptors(h.Descriptors)
		delete(b.held, name)
	}
	b.Talk.Close()
}

// takeTurn tells the other switch that all is ready, and returns when packets may move.
func (p *Process) takeTurn(b *predecessor) error {
	runtime.GC() // what was read is garbage; its collection would take processors while no packet moves
	if err := b.Say(note{Say: sayReady, Declined: b.Declined()}); err != nil {
		return err
	}
	n, _, err := hear(b.Talk, prepareTime, sayStopped)
	if err != nil {
		return err
	}
	p.still = n.Still
	p.sw.Table().TakeOver()
	if len(n.Learned) > 0 {
		err = p.sw.Relearn(n.Learned)
	}
	return errors.Join(err, b.BeginTraffic())
}

// taken says to the switch before that packets move, and does what ports need then.
func (p *Process) taken(b *predecessor) {
	pause := p.sw.Clock() - p.still
	p.server.PauseNS = pause
	if err := b.Say(note{Say: sayRunning}); err != nil {
		p.Log.Warn("the switch before has gone", "error", err)
	}
	b.close()
	for _, err := range b.After() {
		p.Log.Warn("a port goes on as the switch before had it", "error", err)
	}
	p.Log.Info("taken over from the switch before", "pauseNS", pause, "restoreNS", p.sw.Table().Stats().Restored.Took.Nanoseconds(), "connections", p.sw.Table().Stats().Entries)
}
