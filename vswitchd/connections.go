package vswitchd

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/vswitchd/bridge"
	"github.com/antrail/antrail/vswitchd/ofserver"
	"github.com/antrail/antrail/vswitchd/rundir"
)

// Controllers connect to the bridge's own socket, BRIDGE.mgmt, and to those that its rows name
// (ptcp, punix). The process connects to other controllers (tcp, unix), and again after an end.

// The time between two tries to connect, which doubles.
const firstBackoff, lastBackoff = time.Second, 8 * time.Second

// connect opens the sockets of a bridge and serves them until b.stop is called.
func (b *bridges) connect(s *ofserver.Server, br *bridge.Bridge) error {
	var ctx context.Context
	ctx, b.stop = context.WithCancel(b.ctx)
	if err := os.MkdirAll(b.runDir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(b.runDir, br.Name+".mgmt")
	ln, err := rundir.Listen(path)
	if err != nil {
		return fmt.Errorf("the bridge's socket: %w", err)
	}
	b.served.Go(func() { b.runServer(ctx, s, ln); os.Remove(path) })
	b.log.Info("serving OpenFlow", "bridge", br.Name, "socket", path, "switch", b.client.Socket())
	b.served.Go(func() { runPortWatch(ctx, s) })
	b.ways = map[string]*controllerWay{}
	for _, c := range br.Controllers {
		way := &controllerWay{ctx: ctx}
		b.ways[c.Target] = way
		from, err := way.open(c.Target)
		if err != nil {
			way.fault = err
			b.log.Warn("a controller is not connected", "target", c.Target, "error", err)
			continue
		}
		b.served.Go(func() {
			b.runServer(ctx, s, from)
			if path, own := strings.CutPrefix(c.Target, "punix:"); own {
				os.Remove(path)
			}
		})
	}
	return nil
}

// portWatchTime is how often ports are looked at, for links that go up and down by themselves.
const portWatchTime = time.Second

// runPortWatch tells controllers of ports that change, until ctx ends.
func runPortWatch(ctx context.Context, s *ofserver.Server) {
	t := time.NewTicker(portWatchTime)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			s.WatchPorts()
		}
	}
}

// runServer serves a listener until ctx ends.
func (b *bridges) runServer(ctx context.Context, s *ofserver.Server, ln net.Listener) {
	serve := s.Serve
	if _, own := ln.(*controllerWay); own {
		serve = s.ServeOwn
	}
	if err := serve(ctx, ln); err != nil {
		b.log.Error("controllers are not served any more", "at", ln.Addr(), "error", err)
	}
}

// ControllerStates implements bridge.Switch.
func (b *bridges) ControllerStates(string) map[string]bridge.ControllerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string]bridge.ControllerState{}
	for target, way := range b.ways {
		state := bridge.ControllerState{Connected: way.connected.Load(), Role: "other"}
		if fault := way.why(); fault != "" {
			state.Status = map[string]string{"last_error": fault}
		}
		all[target] = state
	}
	return all
}

// controllerWay is the way to a controller. As a listener it brings the connection to it, and
// the next one after that has ended.
type controllerWay struct {
	ctx           context.Context
	network, addr string
	fault         error // of the target

	connected atomic.Bool
	over      chan struct{} // closed when the connection has ended; nil before the first
	backoff   time.Duration
	last      atomic.Pointer[string] // why the last try failed
}

// open returns what brings the connections of a target.
func (w *controllerWay) open(target string) (net.Listener, error) {
	kind, rest, _ := strings.Cut(target, ":")
	switch kind {
	case "punix":
		return rundir.Listen(rest)
	case "ptcp":
		port, host, _ := strings.Cut(rest, ":")
		if port == "" {
			port = "6653"
		}
		return net.Listen("tcp", net.JoinHostPort(strings.Trim(host, "[]"), port))
	case "unix", "tcp":
		w.network, w.addr, w.backoff = kind, rest, firstBackoff
		if kind == "tcp" && strings.HasSuffix(rest, "]") || kind == "tcp" && strings.Count(rest, ":") == 0 {
			w.addr += ":6653"
		}
		return w, nil
	}
	return nil, fmt.Errorf("%s is not a target of kind tcp, unix, ptcp or punix", target)
}

// why is why the controller is not connected; "" if that is not known.
func (w *controllerWay) why() string {
	if w.fault != nil {
		return w.fault.Error()
	}
	if text := w.last.Load(); text != nil && !w.connected.Load() {
		return *text
	}
	return ""
}

// Accept implements net.Listener.
func (w *controllerWay) Accept() (net.Conn, error) {
	if w.over != nil {
		select {
		case <-w.ctx.Done():
			return nil, net.ErrClosed
		case <-w.over:
		}
		w.pause()
	}
	for w.ctx.Err() == nil {
		c, err := (&net.Dialer{Timeout: lastBackoff}).DialContext(w.ctx, w.network, w.addr)
		if err == nil {
			w.over, w.backoff = make(chan struct{}), firstBackoff
			w.connected.Store(true)
			return &outgoing{Conn: c, way: w}, nil
		}
		text := err.Error()
		w.last.Store(&text)
		w.pause()
	}
	return nil, net.ErrClosed
}

// pause waits until the next try.
func (w *controllerWay) pause() {
	select {
	case <-w.ctx.Done():
	case <-time.After(w.backoff):
	}
	w.backoff = min(2*w.backoff, lastBackoff)
}

// Close implements net.Listener. The connections end with the context.
func (w *controllerWay) Close() error { return nil }

// Addr implements net.Listener.
func (w *controllerWay) Addr() net.Addr { return &net.UnixAddr{Name: w.addr, Net: w.network} }

// outgoing is a connection to a controller.
type outgoing struct {
	net.Conn
	way  *controllerWay
	once sync.Once
}

// Close tells the way that the connection has ended.
func (o *outgoing) Close() error {
	err := o.Conn.Close()
	o.once.Do(func() {
		o.way.connected.Store(false)
		close(o.way.over)
	})
	return err
}
