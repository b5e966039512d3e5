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

// Controllers connect to the bridge's own socket, BRIDGE.mgmt, and to the listening targets of its
// rows (ptcp, punix). The process connects to the other targets (tcp, unix), and again after a
// connection has ended.

// The time between two attempts to connect begins with firstBackoff and doubles up to lastBackoff.
const firstBackoff, lastBackoff = time.Second, 8 * time.Second

// openSockets opens the sockets of a bridge and serves them until b.stop is called.
func (b *bridges) openSockets(s *ofserver.Server, br *bridge.Bridge) error {
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
	b.targets = map[string]*controllerTarget{}
	for _, c := range br.Controllers {
		way := &controllerTarget{ctx: ctx}
		b.targets[c.Target] = way
		from, err := way.listen(c.Target)
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

// portWatchTime is the interval between two checks for links that went up or down.
const portWatchTime = time.Second

// runPortWatch notifies controllers of changed ports, until ctx ends.
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
	if _, own := ln.(*controllerTarget); own {
		serve = s.ServeOwn
	}
	if err := serve(ctx, ln); err != nil {
		b.log.Error("controllers are no longer served", "at", ln.Addr(), "error", err)
	}
}

// ControllerStates implements bridge.Switch.
func (b *bridges) ControllerStates(string) map[string]bridge.ControllerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string]bridge.ControllerState{}
	for target, way := range b.targets {
		state := bridge.ControllerState{Connected: way.connected.Load(), Role: "other"}
		if fault := way.lastError(); fault != "" {
			state.Status = map[string]string{"last_error": fault}
		}
		all[target] = state
	}
	return all
}

// controllerTarget is a target of a bridge's rows. As a net.Listener it connects to the controller:
// Accept returns a new connection after the previous one has ended.
type controllerTarget struct {
	ctx           context.Context
	network, addr string
	fault         error // why the target is not usable; nil if it is

	connected atomic.Bool
	ended     chan struct{} // closed when the connection has ended; nil before the first
	backoff   time.Duration
	last      atomic.Pointer[string] // the error of the last attempt
}

// listen returns the listener that accepts the connections of a target.
func (w *controllerTarget) listen(target string) (net.Listener, error) {
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
	return nil, fmt.Errorf("target %s: its type must be tcp, unix, ptcp or punix", target)
}

// lastError is the reason why the controller is not connected; "" if it is connected or unknown.
func (w *controllerTarget) lastError() string {
	if w.fault != nil {
		return w.fault.Error()
	}
	if text := w.last.Load(); text != nil && !w.connected.Load() {
		return *text
	}
	return ""
}

// Accept implements net.Listener.
func (w *controllerTarget) Accept() (net.Conn, error) {
	if w.ended != nil {
		select {
		case <-w.ctx.Done():
			return nil, net.ErrClosed
		case <-w.ended:
		}
		w.waitBackoff()
	}
	for w.ctx.Err() == nil {
		c, err := (&net.Dialer{Timeout: lastBackoff}).DialContext(w.ctx, w.network, w.addr)
		if err == nil {
			w.ended, w.backoff = make(chan struct{}), firstBackoff
			w.connected.Store(true)
			return &outgoing{Conn: c, target: w}, nil
		}
		text := err.Error()
		w.last.Store(&text)
		w.waitBackoff()
	}
	return nil, net.ErrClosed
}

// waitBackoff waits until the next attempt.
func (w *controllerTarget) waitBackoff() {
	select {
	case <-w.ctx.Done():
	case <-time.After(w.backoff):
	}
	w.backoff = min(2*w.backoff, lastBackoff)
}

// Close implements net.Listener. The connections end with ctx.
func (w *controllerTarget) Close() error { return nil }

// Addr implements net.Listener.
func (w *controllerTarget) Addr() net.Addr { return &net.UnixAddr{Name: w.addr, Net: w.network} }

// outgoing is a connection to a controller.
type outgoing struct {
	net.Conn
	target *controllerTarget
	once   sync.Once
}

// Close also makes the target's Accept connect again.
func (o *outgoing) Close() error {
	err := o.Conn.Close()
	o.once.Do(func() {
		o.target.connected.Store(false)
		close(o.target.ended)
	})
	return err
}
