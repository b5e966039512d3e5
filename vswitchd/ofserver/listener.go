package ofserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// maxConnections is how many controllers may be connected to a server at once.
const maxConnections = 64

// New makes a server. A switch without a pipeline gets an empty one, which drops all packets. The
// error is the switch's.
func New(c Config) (*Server, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if len(c.Versions) == 0 {
		c.Versions = openflow.Versions
	}
	s := &Server{Config: c, sw: drivenSwitch{c.Switch}, begun: time.Now(), connections: map[*connection]bool{}, settings: map[uint32]telemetry.PortConfig{}}
	if c.Switch.Names() == nil {
		if err := c.Switch.Apply(&flow.Bundle{Names: flow.NewNames()}); err != nil {
			return nil, err
		}
	}
	options := c.Switch.Names().TunnelOptions()
	s.tlvs.Store(&options)
	s.WatchPorts()
	return s, nil
}

// Serve accepts connections until the listener is closed or ctx ends. It closes the listener
// and its connections.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error { return s.serve(ctx, ln, 0) }

// ServeOwn is Serve for connections that the switch itself has made. Their controllers get
// asynchronous messages before they set miss_send_len.
func (s *Server) ServeOwn(ctx context.Context, ln net.Listener) error {
	return s.serve(ctx, ln, defaultMissSendLen)
}

// defaultMissSendLen is OFP_DEFAULT_MISS_SEND_LEN.
const defaultMissSendLen = 128

func (s *Server) serve(ctx context.Context, ln net.Listener, missSendLen uint16) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	defer ln.Close()
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for {
		peer, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		c := s.admit(newConnection(s, peer, missSendLen))
		if c == nil {
			s.Log.Warn("a controller is refused: too many are connected", "most", maxConnections)
			peer.Close()
			continue
		}
		all.Go(func() { s.runConnection(ctx, c) })
	}
}

// admit registers a connection, and returns it; nil if there are too many.
func (s *Server) admit(c *connection) *connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.connections) >= maxConnections {
		return nil
	}
	s.connections[c] = true
	return c
}

// runConnection serves a connection until it ends.
func (s *Server) runConnection(ctx context.Context, c *connection) {
	stop := context.AfterFunc(ctx, func() { c.peer.Close() })
	defer stop()
	defer c.peer.Close()
	defer func() {
		s.mu.Lock()
		delete(s.connections, c)
		s.mu.Unlock()
		close(c.ended)
		c.monitors.updates.close()
		c.endMonitors()
	}()
	go c.runPacketIns()
	go c.runUpdates()
	if err := c.serve(); err != nil {
		s.Log.Info("a controller's connection has ended", "why", err)
	}
}
