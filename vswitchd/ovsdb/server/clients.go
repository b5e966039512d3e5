package server

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/antrail/antrail/vswitchd/ovsdb/store"
)

// Limits are the limits of clients.
type Limits struct {
	Clients      int   // connections
	Message      int64 // bytes of a message that is received
	Outbox       int   // bytes that wait for a client; one message may have more
	Monitors     int   // of a client
	Transactions int   // of a client, that wait for rows
	Locks        int   // of a client, owned or waited for
}

// DefaultLimits are enough for a Node's agent, its tools and a controller.
var DefaultLimits = Limits{Clients: 256, Message: 16 << 20, Outbox: 16 << 20, Monitors: 64, Transactions: 64, Locks: 64}

// Server serves databases. Several goroutines may use it.
type Server struct {
	limits Limits
	log    *slog.Logger
	dbs    *databases
	locks  lockTable

	mu      sync.Mutex
	clients map[*client]struct{}
}

// New makes a server of databases. It adds the database _Server, which lists them.
func New(log *slog.Logger, limits Limits, all ...*store.Database) (*Server, error) {
	dbs, err := newDatabases(all)
	if err != nil {
		return nil, err
	}
	return &Server{
		limits: limits, log: log, dbs: dbs, clients: map[*client]struct{}{},
		locks: lockTable{max: limits.Locks, queues: map[string][]*peer{}},
	}, nil
}

// Databases are the names of the databases.
func (s *Server) Databases() []string { return s.dbs.names() }

// Serve accepts connections until ctx ends. It closes the listener and all connections.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	var running sync.WaitGroup
	defer running.Wait()
	connected, end := context.WithCancel(ctx)
	defer end()
	for {
		nc, err := ln.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		running.Go(func() { s.runClient(connected, nc) })
	}
}

// runClient serves one connection until its client or ctx ends it.
func (s *Server) runClient(ctx context.Context, nc net.Conn) {
	c := newClient(nc, s.limits, s.dbs, &s.locks)
	if !s.admit(c) {
		s.log.Warn("a client was refused: there are too many", "limit", s.limits.Clients)
		_ = nc.Close()
		return
	}
	defer context.AfterFunc(ctx, c.close)()
	if err := c.serve(); err != nil && ctx.Err() == nil {
		s.log.Warn("a client was disconnected", "err", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
}

func (s *Server) admit(c *client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.clients) >= s.limits.Clients {
		return false
	}
	s.clients[c] = struct{}{}
	return true
}

// Usage has the counts of ovsdb-server's memory/show.
func (s *Server) Usage() map[string]int {
	s.mu.Lock()
	clients := slices.Collect(maps.Keys(s.clients))
	s.mu.Unlock()
	usage := map[string]int{"sessions": len(clients), "monitors": 0}
	for _, c := range clients {
		usage["monitors"] += c.monitors.count()
	}
	usage["rows"], usage["cells"] = s.dbs.size()
	return usage
}
