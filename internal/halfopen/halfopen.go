// Package halfopen serves HTTP. Peers that do not finish their requests cannot block others.
//
// A connection is half-open until its request is complete, head and body. It is half-open again
// after the answer, while it waits for the next request. The number of half-open connections of a
// peer is limited. If the peer opens one more, its oldest is closed. The same holds for all
// connections together. A new connection is closed only if every connection has a request in
// progress.
//
// Nothing is refused, because all local users of a loopback address are one peer: TCP has no
// SO_PEERCRED. A request that comes at once is always younger than those that wait for the rest.
//
// A complete request has no deadline and is never closed here, because an answer may be a stream
// that lasts for hours.
//
// Goroutines: one for each connection, of net/http.
package halfopen

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Limits bound the connections of peers.
type Limits struct {
	PerPeer int // half-open connections of a peer
	Total   int // connections of all peers, with requests in progress or without
	// Header and Body are how long the head and the body of a request may take to arrive. Idle is
	// how long a connection may wait for the next request.
	Header, Body, Idle time.Duration
	HeaderBytes        int
	BodyBytes          int64
}

// logPeriod is the shortest time between two log lines about closed connections.
const logPeriod = time.Minute

// Server is an HTTP server with bounds. It may be used by several goroutines.
type Server struct {
	Limits  Limits
	Handler http.Handler
	// Name is the server's name in the log.
	Name string
	Log  *slog.Logger // nil for none

	mu     sync.Mutex
	conns  map[net.Conn]*held
	half   list.List      // of *held, half-open ones, oldest first
	peers  map[string]int // half-open ones
	closed uint64
	told   time.Time
	untold int // closed since told
}

// held is an open connection.
type held struct {
	conn net.Conn
	peer string
	at   *list.Element // in half, nil while a request is in progress
}

// Serve answers on a listener until ctx ends, and closes the listener.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	s.mu.Lock()
	s.conns, s.peers = map[net.Conn]*held{}, map[string]int{}
	s.mu.Unlock()
	h := &http.Server{
		Handler: http.HandlerFunc(s.whole), ConnState: s.follow, ConnContext: withConn,
		ReadHeaderTimeout: s.Limits.Header, IdleTimeout: s.Limits.Idle, MaxHeaderBytes: s.Limits.HeaderBytes,
	}
	defer context.AfterFunc(ctx, func() { h.Close() })()
	if err := h.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// follow is http.Server.ConnState.
func (s *Server) follow(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		h := &held{conn: c, peer: peerOf(c)}
		s.conns[c] = h
		s.wait(h)
		s.bound(h.peer)
	case http.StateIdle:
		if h := s.conns[c]; h != nil {
			s.wait(h)
			s.bound(h.peer)
		}
	case http.StateClosed, http.StateHijacked:
		if h := s.conns[c]; h != nil {
			s.removeHalfOpen(h)
			delete(s.conns, c)
		}
	}
}

// wait makes a connection the youngest of the half-open ones.
func (s *Server) wait(h *held) {
	s.removeHalfOpen(h)
	h.at = s.half.PushBack(h)
	s.peers[h.peer]++
}

// removeHalfOpen takes a connection out of the half-open ones.
func (s *Server) removeHalfOpen(h *held) {
	if h.at == nil {
		return
	}
	s.half.Remove(h.at)
	h.at = nil
	if s.peers[h.peer]--; s.peers[h.peer] == 0 {
		delete(s.peers, h.peer)
	}
}

// bound closes the oldest half-open connection of a peer that has too many. It closes the oldest
// of all peers if there are too many in total.
func (s *Server) bound(peer string) {
	if s.peers[peer] > s.Limits.PerPeer {
		for e := s.half.Front(); e != nil; e = e.Next() {
			if h := e.Value.(*held); h.peer == peer {
				s.end(h)
				break
			}
		}
	}
	if e := s.half.Front(); e != nil && len(s.conns) > s.Limits.Total {
		s.end(e.Value.(*held))
	}
}

// end closes a half-open connection.
func (s *Server) end(h *held) {
	s.removeHalfOpen(h)
	delete(s.conns, h.conn)
	h.conn.Close()
	s.closed++
	s.untold++
	if now := time.Now(); s.Log != nil && now.Sub(s.told) >= logPeriod {
		s.Log.Warn("half-open HTTP connections were closed: a peer holds many and does not finish its requests",
			"server", s.Name, "peer", h.peer, "closed", s.untold)
		s.told, s.untold = now, 0
	}
}

// markWhole records that a connection's request is complete. It returns false if the connection
// was closed meanwhile.
func (s *Server) markWhole(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.conns[c]
	if h == nil {
		return false
	}
	s.removeHalfOpen(h)
	return true
}

// whole passes a request to the handler once its whole body is there.
func (s *Server) whole(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(connKey{}).(net.Conn)
	rc := http.NewResponseController(w)
	if err := rc.SetReadDeadline(time.Now().Add(s.Limits.Body)); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.Limits.BodyBytes))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		http.Error(w, fmt.Sprintf("413: a request has %d bytes at most", s.Limits.BodyBytes), http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		w.Header().Set("Connection", "close")
		http.Error(w, "408: the request is not whole: "+err.Error(), http.StatusRequestTimeout)
		return
	}
	if !s.markWhole(c) || rc.SetReadDeadline(time.Time{}) != nil {
		return // closed meanwhile
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	s.Handler.ServeHTTP(w, r)
}

// peerOf names the peer of a connection. On a unix socket that is a user of this machine by uid,
// else an address. All loopback addresses are one peer, and so are those of an IPv6 /64.
func peerOf(c net.Conn) string {
	if u, ok := c.(*net.UnixConn); ok {
		return userOf(u)
	}
	a, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().String()
	}
	ip := a.Addr().Unmap().WithZone("")
	switch {
	case ip.IsLoopback():
		return "loopback"
	case ip.Is6():
		return netip.PrefixFrom(ip, 64).Masked().String()
	}
	return ip.String()
}
