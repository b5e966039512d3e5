package server

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
	"github.com/antrail/antrail/vswitchd/ovsdb/store"
)

// Limits bound what clients may hold of the server.
type Limits struct {
	Clients      int   // connections
	Message      int64 // bytes of a message that is received
	Outbox       int   // bytes that wait for a client; one message may have more
	Monitors     int   // of a client
	Transactions int   // of a client, that wait for rows
}

// DefaultLimits are for a Node: its agent, its tools and a controller.
var DefaultLimits = Limits{Clients: 256, Message: 16 << 20, Outbox: 16 << 20, Monitors: 64, Transactions: 64}

// Server serves databases. Several goroutines may use it.
type Server struct {
	limits Limits
	log    *slog.Logger
	dbs    map[string]*store.Database
	id     datum.ID
	locks  lockTable

	mu      sync.Mutex
	clients map[*conn]struct{}
}

// New makes a server of databases. It adds the database _Server, which lists them.
func New(log *slog.Logger, limits Limits, dbs ...*store.Database) (*Server, error) {
	s := &Server{limits: limits, log: log, dbs: map[string]*store.Database{}, id: datum.NewID(), clients: map[*conn]struct{}{}}
	list := store.New(schema.Server())
	for _, d := range append(dbs, list) {
		s.dbs[d.Schema.Name] = d
	}
	return s, list.Transact("", s.listDatabases)
}

// listDatabases writes the rows of _Server.
func (s *Server) listDatabases(tx *store.Tx) error {
	for _, d := range s.dbs {
		row := map[string]datum.Datum{
			"name": datum.One(datum.Text(d.Schema.Name)), "model": datum.One(datum.Text("standalone")),
			"connected": datum.One(datum.Bool(true)), "leader": datum.One(datum.Bool(true)),
			"schema": datum.One(datum.Text(d.Schema.Text())),
		}
		if _, err := tx.Insert("Database", row); err != nil {
			return err
		}
	}
	return nil
}

// Databases are the names of the databases.
func (s *Server) Databases() []string { return slices.Sorted(maps.Keys(s.dbs)) }

// Serve takes connections until ctx ends, and closes the listener and all connections then.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	var clients sync.WaitGroup
	defer clients.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
	for {
		c, err := ln.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil:
			s.log.Warn("a connection was not accepted", "err", err)
			return err
		}
		clients.Go(func() { s.runClient(ctx, c) })
	}
}

// runClient serves one connection until its client or ctx ends it.
func (s *Server) runClient(ctx context.Context, nc net.Conn) {
	c := newConn(s, nc)
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

func (s *Server) admit(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.clients) >= s.limits.Clients {
		return false
	}
	s.clients[c] = struct{}{}
	return true
}

// Usage counts what memory/show of ovsdb-server tells.
func (s *Server) Usage() map[string]int {
	s.mu.Lock()
	clients := slices.Collect(maps.Keys(s.clients))
	s.mu.Unlock()
	usage := map[string]int{"sessions": len(clients), "monitors": 0, "rows": 0, "cells": 0}
	for _, c := range clients {
		usage["monitors"] += c.countMonitors()
	}
	for _, d := range s.dbs {
		rows, cells := d.Size()
		usage["rows"] += rows
		usage["cells"] += cells
	}
	return usage
}
