package switchd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/ports/afxdp"
)

// A switch process that takes the place of another that runs (handover.go). It builds its
// switch and ports from what it is given, while the other moves packets. No packet moves
// between the moment in which the other has stopped and the one in which this one has found
// the connections, which lie in memory that both have mapped.

// predecessor is what the switch before has given.
type predecessor struct {
	door.Talk
	Inheritance
	connections *os.File
	kept        []byte
}

// meet asks the switch at the socket to hand over; nil if none runs.
func (p *Process) meet(ctx context.Context) (*predecessor, error) {
	conn, err := (&net.Dialer{Timeout: wordTime}).DialContext(ctx, "unix", p.Socket)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b := &predecessor{Talk: door.Talk{UnixConn: conn.(*net.UnixConn)}}
	if err = door.Upgrade(conn, "/v1/take-over", handOverProtocol, nil); err == nil {
		err = b.receive(p.Settings.Conntrack.max())
	}
	if err != nil {
		b.close()
		return nil, fmt.Errorf("the switch at %s does not hand over: %w", p.Socket, err)
	}
	return b, nil
}

// receive says hello and takes what is given.
func (b *predecessor) receive(connections int) error {
	if err := b.Say(note{Say: sayHello, Layout: afxdp.Layout, Connections: connections}); err != nil {
		return err
	}
	for {
		n, fds, err := hear(b.Talk, prepareTime, sayPort, sayConnections)
		switch {
		case err != nil:
			return err
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

// close ends the talk and closes what nobody has taken. The connections' file is the
// switch's, once that was opened.
func (b *predecessor) close() {
	b.Inheritance.Close()
	b.Talk.Close()
}

// takeTurn tells the other switch that all is ready, and returns when packets may move.
func (p *Process) takeTurn(b *predecessor) error {
	if err := b.Say(note{Say: sayReady, Declined: b.Declined()}); err != nil {
		return err
	}
	n, _, err := hear(b.Talk, prepareTime, sayStopped)
	if err != nil {
		return err
	}
	p.still = n.Still
	p.sw.TakeOver()
	if len(n.Learned) > 0 {
		err = p.sw.Relearn(n.Learned)
	}
	return errors.Join(err, b.Begin())
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
	p.Log.Info("taken over from the switch before", "pauseNS", pause, "connections", p.sw.table.Stats().Entries)
}
