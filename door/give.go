package door

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// A controller gives a port with its descriptors to a switch that may not open ports by name. The
// request is an HTTP upgrade; then each side sends one message (talk.go):
//
//	client                                      switch
//	POST /v1/ports/N/give, Upgrade           →
//	                                         ←  101
//	PortSpec, with the descriptors           →  makes the port of them
//	                                         ←  Given
//
// POST /v1/tunnel/egresses/give does the same with TunnelEgresses and sockets that receive at
// their addresses. The switch always closes the descriptors that no port uses. The client's own
// stay open.

// giveProtocol is the upgrade's protocol. Its number changes with the messages.
const giveProtocol = "antrail-port/1"

// giveTime is how long either side waits for a message.
const giveTime = 10 * time.Second

// ErrConfined is returned by a switch that opens no port by name, and no socket of a port.
var ErrConfined = errors.New("the switch is confined and opens no port: give it the descriptors (POST /v1/ports/N/give, or /v1/tunnel/egresses/give)")

// Given is the switch's answer.
type Given struct {
	// Error is the fault of the spec or its descriptors; "" if there is none.
	Error string `json:"error,omitempty"`
	// Why is the reason for the driver of a lent port.
	Why string `json:"why,omitempty"`
	// Value was stored with the descriptors that the switch holds (helddescriptors.go).
	Value json.RawMessage `json:"value,omitempty"`
}

// answerGive makes a port of the caller's descriptors.
func (s *Server) answerGive(w http.ResponseWriter, r *http.Request) {
	no, err := portNo(r)
	if err == nil && s.open == nil {
		err = errNoPorts
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.receiveGiven(w, r, fmt.Sprintf("port %d", no), func(text []byte, fds []int) error {
		var p PortSpec
		if err := decode(bytes.NewReader(text), &p); err != nil {
			CloseDescriptors(fds)
			return fmt.Errorf("port %d: %w", no, err)
		}
		p.No = no
		return s.open.GivePort(&p, fds)
	})
}

// answerGiveEgresses makes the tunnel receive by the caller's sockets.
func (s *Server) answerGiveEgresses(w http.ResponseWriter, r *http.Request) {
	if s.open == nil {
		http.Error(w, errNoPorts.Error(), http.StatusBadRequest)
		return
	}
	s.receiveGiven(w, r, "egresses", func(text []byte, fds []int) error {
		var e TunnelEgresses
		if err := decode(bytes.NewReader(text), &e); err != nil {
			CloseDescriptors(fds)
			return fmt.Errorf("egresses: %w", err)
		}
		return s.open.GiveEgresses(&e, fds)
	})
}

// receiveGiven reads the controller's message, passes it to a function, and answers with the
// function's error.
func (s *Server) receiveGiven(w http.ResponseWriter, r *http.Request, what string, to func(text []byte, fds []int) error) {
	t, ok := s.upgradeTo(giveProtocol, w, r)
	if !ok {
		return
	}
	defer t.Close()
	err := t.SetDeadline(time.Now().Add(giveTime))
	var text json.RawMessage
	var fds []int
	if err == nil {
		fds, err = t.Receive(&text)
	}
	if err != nil {
		err = fmt.Errorf("%s: the message with its descriptors: %w", what, err)
	} else {
		err = to(text, fds)
	}
	var g Given
	if err != nil {
		g.Error = err.Error()
	}
	t.Send(g) // the caller may have hung up
}

// upgradeTo switches the controller's connection to another protocol. If ok is false, the caller
// has its answer.
func (s *Server) upgradeTo(protocol string, w http.ResponseWriter, r *http.Request) (t MessageConn, ok bool) {
	if wanted := r.Header.Get("Upgrade"); wanted != protocol {
		http.Error(w, fmt.Sprintf("%s takes an upgrade to %s, not to %.40q", r.URL.Path, protocol, wanted), http.StatusUpgradeRequired)
		return t, false
	}
	if err := s.controllers.admit(r); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return t, false
	}
	t, err := Hijack(w, protocol)
	return t, err == nil
}

// answerPrograms gives the controller the programs for a packet socket: the filter of the socket
// and the program at tc ingress. For a tunnel or tap, it gives their one program. If there are
// none, it gives no descriptor.
func (s *Server) answerPrograms(w http.ResponseWriter, r *http.Request) {
	var q ProgramsQuery
	if t, ok := s.hearQuery(w, r, &q); ok {
		defer t.Close()
		t.Send(Given{}, s.open.Programs(q)...) // the caller may have hung up
	}
}

// answerLend gives the controller copies of a port's descriptors.
func (s *Server) answerLend(w http.ResponseWriter, r *http.Request) {
	no, err := portNo(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if t, ok := s.hearQuery(w, r, &struct{}{}); ok {
		defer t.Close()
		s.open.LendPort(no, func(why string, fds []int) { t.Send(Given{Why: why}, fds...) }) // the caller may have hung up
	}
}

// answerPause stops receiving on all ports until the controller hangs up, or for giveTime.
func (s *Server) answerPause(w http.ResponseWriter, r *http.Request) {
	t, ok := s.hearQuery(w, r, &struct{}{})
	if !ok {
		return
	}
	defer t.Close()
	defer s.open.PausePorts()()
	if t.Send(Given{}) == nil {
		t.Read(make([]byte, 1)) // the controller hangs up, or the deadline passes
	}
}

// hearQuery reads the controller's question. If ok is false, the caller has its answer. The
// client sends first, because its HTTP reader may take bytes that follow the 101 at once.
func (s *Server) hearQuery(w http.ResponseWriter, r *http.Request, q any) (t MessageConn, ok bool) {
	if s.open == nil {
		http.Error(w, errNoPorts.Error(), http.StatusBadRequest)
		return t, false
	}
	if t, ok = s.upgradeTo(giveProtocol, w, r); !ok {
		return t, false
	}
	err := t.SetDeadline(time.Now().Add(giveTime))
	if err == nil {
		var fds []int
		fds, err = t.Receive(q)
		CloseDescriptors(fds)
	}
	if err != nil {
		t.Close()
	}
	return t, err == nil
}

// GivePort gives the switch a port with copies of its descriptors. The caller's own stay open.
func (c *Client) GivePort(p *PortSpec, fds []int) error {
	_, _, err := c.exchangeDescriptors(portPath(p.No)+"/give", p, fds...)
	return err
}

// LendPort returns copies of a port's descriptors, which belong to the caller, and the reason for
// its driver. A missing port has none. A port on AF_XDP has none either, unless the switch is
// confined. With the copies the port outlives the switch: another switch can get them, and packets
// that are not yet received wait.
func (c *Client) LendPort(no uint32) (why string, fds []int, err error) {
	g, fds, err := c.exchangeDescriptors(portPath(no)+"/lend", struct{}{})
	return g.Why, fds, err
}

// PausePorts stops receiving on all ports until resume is called, or for ten seconds. Frames wait
// meanwhile. So ports that are given in between begin together.
func (c *Client) PausePorts() (resume func(), err error) {
	t, err := c.upgradeTo(giveProtocol, "/v1/ports/pause")
	if err != nil {
		return nil, err
	}
	if err = t.Send(struct{}{}); err == nil {
		_, err = t.Receive(&Given{})
	}
	if err != nil {
		return nil, errors.Join(&AwayError{c.socket, err}, t.Close())
	}
	return func() { t.Close() }, nil
}

// GiveEgresses sets the addresses of Egresses, and gives the switch copies of sockets that
// receive there.
func (c *Client) GiveEgresses(e *TunnelEgresses, fds []int) error {
	_, _, err := c.exchangeDescriptors("/v1/tunnel/egresses/give", e, fds...)
	return err
}

// ProgramsQuery selects programs: those of packet sockets if it is empty.
type ProgramsQuery struct {
	Tunnel string `json:"tunnel,omitempty"` // the tunnel's kind
	IPv6   bool   `json:"ipv6,omitempty"`   // the tunnel goes over IPv6
	Driver string `json:"driver,omitempty"` // tap
}

// Programs are descriptors of the filter and the ingress program that a packet socket needs
// before it is given. With a kind of tunnel, it is the one program of that tunnel's link, and
// with a driver, that of its device. There are none if the kernel must not offload. They belong
// to the caller. A switch that does not know the query returns the two of a packet socket.
func (c *Client) Programs(q ProgramsQuery) ([]int, error) {
	_, fds, err := c.exchangeDescriptors("/v1/offload/programs", q)
	return fds, err
}

// exchangeDescriptors sends a value with copies of descriptors, and reads the answer. Received
// descriptors belong to the caller.
func (c *Client) exchangeDescriptors(path string, v any, fds ...int) (g Given, got []int, err error) {
	t, err := c.upgradeTo(giveProtocol, path)
	if err != nil {
		return g, nil, err
	}
	defer t.Close()
	if err = t.Send(v, fds...); err == nil {
		got, err = t.Receive(&g)
	}
	switch {
	case err != nil:
		return g, nil, &AwayError{c.socket, err}
	case g.Error != "":
		CloseDescriptors(got)
		return g, nil, errors.New(g.Error)
	}
	return g, got, nil
}

// upgradeTo opens a connection with another protocol.
func (c *Client) upgradeTo(protocol, path string) (t MessageConn, err error) {
	conn, err := net.DialTimeout("unix", c.socket, giveTime)
	if err != nil {
		return t, &AwayError{c.socket, err}
	}
	header := http.Header{}
	if token := c.token.Load(); token != nil {
		header.Set(controllerHeader, *token)
	}
	if err = conn.SetDeadline(time.Now().Add(answerTime)); err == nil {
		err = Upgrade(conn, path, protocol, header)
	}
	if err != nil {
		return t, errors.Join(fmt.Errorf("the switch at %s: %s: %w", c.socket, path, err), conn.Close())
	}
	return MessageConn{conn.(*net.UnixConn)}, nil
}
