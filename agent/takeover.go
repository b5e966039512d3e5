package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/ports/afxdp"
	"github.com/antrail/antrail/switchd"
)

// An agent that takes the place of another that runs (handovertalk.go). It builds
// its switch from the flow snapshot, and its ports from what it is given, while the
// other moves packets. No packet moves between the moment in which the other has
// stopped and the one in which this one has found the connections, which lie in
// memory that both have mapped. What it has not been given, or cannot go on with, it
// opens afterwards, and then it reads its objects, as after any start.

// estate is what the agent before has given.
type estate struct {
	talk
	switchd.Inheritance
	arena *os.File
	still int64 // since when none moves, by bootClock
}

// meet asks the agent that runs to hand over; nil when none runs.
func meet(ctx context.Context, c *Config) (*estate, error) {
	conn, err := (&net.Dialer{Timeout: word}).DialContext(ctx, "unix", c.Socket)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e := &estate{talk: talk{door.Talk{UnixConn: conn.(*net.UnixConn)}}}
	if err = door.Upgrade(conn, "/take-over", handOverProtocol, nil); err == nil {
		err = e.receive(c.identity())
	}
	if err != nil {
		e.close()
		return nil, notHandedOver{fmt.Errorf("the agent at %s does not hand over: %w", c.Socket, err)}
	}
	return e, nil
}

// receive says hello and takes what is given.
func (e *estate) receive(identity string) error {
	if err := e.say(note{Say: sayHello, Config: identity, Layout: afxdp.Layout}); err != nil {
		return err
	}
	for {
		n, fds, err := e.hear(preparation, sayPort, sayArena)
		if err != nil {
			return err
		}
		if n.Say == sayPort {
			e.Add(n.Driver, n.Name, fds)
			continue
		}
		if len(fds) != 1 {
			door.CloseDescriptors(fds)
			return fmt.Errorf("the connections came with %d descriptors", len(fds))
		}
		e.arena = os.NewFile(uintptr(fds[0]), "ct.arena")
		return nil
	}
}

// close ends the talk and closes what nobody has taken. The arena's file is its
// user's.
func (e *estate) close() error {
	e.Inheritance.Close()
	return e.talk.Close()
}

// inherit runs an agent with what it was given, as run does. When the other agent
// does not let it begin, nothing has changed.
func (a *Agent) inherit(ctx context.Context) error {
	a.left = true // all is the other's until it has stopped
	err := a.prepare(ctx)
	if err == nil {
		err = a.awaitTurn()
	}
	if err != nil {
		return notHandedOver{errors.Join(err, a.estate.close(), a.stop())}
	}
	a.left = false
	a.local.Lend(false)
	a.keepTaps(false)
	turning := beginParts(ctx, a.local.Run)
	a.paused = timeSince(a.estate.still, a.clock())
	err = a.estate.say(note{Say: sayRunning}) // who has gone meanwhile needs not know
	if err != nil {
		a.log.Warn("the agent before has gone", "error", err)
	}
	a.estate.close()
	for _, err := range a.estate.After() {
		a.log.Warn("a port goes on as the agent before had it", "error", err)
	}
	logRestored(a.log, a.config.arenaFile(), a.ct.Stats().Restored)
	a.log.Info("taken over from the agent before", "pause", a.paused)
	ln, err := switchd.ReplaceSocket(a.config.Socket)
	if err != nil {
		return errors.Join(err, turning.stop(), a.stop())
	}
	return a.finish(ln, a.serve(ctx, ln, turning))
}

// prepare makes all that is needed before packets move. It is no hurry, and the other
// agent moves packets meanwhile: so it leaves it all processors but one, and is done
// with what it has thrown away before it is its turn.
func (a *Agent) prepare(ctx context.Context) error {
	processors := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(processors)
	if err := a.start(ctx); err != nil {
		return err
	}
	if err := a.pods.inherit(a.estate.Has); err != nil {
		return err
	}
	if err := a.nodeUp(false); err != nil {
		return err
	}
	runtime.GC()
	return nil
}

// awaitTurn tells the other agent that all is ready, and returns when packets may
// move.
func (a *Agent) awaitTurn() error {
	e := a.estate
	if err := e.say(note{Say: sayReady, Declined: e.Declined()}); err != nil {
		return err
	}
	n, _, err := e.hear(preparation, sayStopped)
	if err != nil {
		return err
	}
	e.still = n.Still
	a.local.TakeOver()
	learned, err := parseLearned(n.Learned)
	if err == nil && len(learned) > 0 {
		err = a.sw.Relearn(learned)
	}
	return errors.Join(err, e.Begin())
}

// parseLearned reads lines of a flow snapshot.
func parseLearned(lines []string) ([]dataplane.Learned, error) {
	s := &snapshot{}
	for _, line := range lines {
		text, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "learned ")
		if !ok {
			return nil, fmt.Errorf("%.40q is no learned entry", line)
		}
		if err := s.learnedLine(text); err != nil {
			return nil, err
		}
	}
	return s.learned, nil
}

// inherit has the ports that were given enter the switch.
func (p *podPorts) inherit(given func(link string) bool) error {
	for _, w := range p.wanted() {
		if !given(w.Link) {
			continue
		}
		o, err := p.enter(w)
		if errors.Is(err, switchd.ErrDeclined) {
			p.log.Warn("port is opened anew", "port", w.Name, "link", w.Link, "why", err)
			continue
		}
		if err != nil {
			return fmt.Errorf("port %s: %w", w.Name, err)
		}
		p.mu.Lock()
		p.have[w.Link] = o
		p.mu.Unlock()
		p.log.Info("port taken over", "port", w.Name, "ofPort", w.OFPort, "link", w.Link, "driver", o.driver)
	}
	return nil
}
