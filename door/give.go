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

// A port with its descriptors, for a switch that may open none by name. The request is an
// HTTP upgrade; then each side says one message (talk.go):
//
//	client                                      switch
//	POST /v1/ports/N/give, Upgrade           →
//	                                         ←  101
//	PortSpec, with the descriptors           →  makes the port of them
//	                                         ←  Given
//
// POST /v1/tunnel/egresses/give does the same with TunnelEgresses and sockets that receive
// at their addresses. In every case, the switch closes the descriptors that no port has, and
// the client's own stay open.

// giveProtocol names this; its number changes with what is said.
const giveProtocol = "antrail-port/1"

// giveTime bounds how long either side waits for a message.
const giveTime = 10 * time.Second

// ErrConfined says that a switch opens no port by name, and no socket of a port.
var ErrConfined = errors.New("the switch is confined and opens no port: give it the descriptors (POST /v1/ports/N/give, or /v1/tunnel/egresses/give)")

// Given is what the switch answers.
type Given struct {
	// Error names the fault of the spec or its descriptors; "" if there is none.
	Error string `json:"error,omitempty"`
	// Why is the reason for the driver of a port that is lent.
	Why string `json:"why,omitempty"`
	// Value came with descriptors that the switch holds (helddescriptors.go).
	Value json.RawMessage `json:"value,omitempty"`
}

// answerGive makes a port of what the caller gives.
func (s *Server) answerGive(w http.ResponseWriter, r *http.Request) {
	no, err := portNo(r)
	if err == nil && s.open == nil {
		err = errNoPorts
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.takeGiven(w, r, fmt.Sprintf("port %d", no), func(text []byte, fds []int) error {
		var p PortSpec
		if err := decode(bytes.NewReader(text), &p); err != nil {
			CloseDescriptors(fds)
			return fmt.Errorf("port %d: %w", no, err)
		}
		p.No = no
		return s.open.GivePort(&p, fds)
	})
}

// answerGiveEgresses has the tunnel receive by the caller's sockets.
func (s *Server) answerGiveEgresses(w http.ResponseWriter, r *http.Request) {
	if s.open == nil {
		http.Error(w, errNoPorts.Error(), http.StatusBadRequest)
		return
	}
	s.takeGiven(w, r, "egresses", func(text []byte, fds []int) error {
		var e TunnelEgresses
		if err := decode(bytes.NewReader(text), &e); err != nil {
			CloseDescriptors(fds)
			return fmt.Errorf("egresses: %w", err)
		}
		return s.open.GiveEgresses(&e, fds)
	})
}

// takeGiven reads what the controller gives, hands it on, and answers with the outcome.
func (s *Server) takeGiven(w http.ResponseWriter, r *http.Request, what string, to func(text []byte, fds []int) error) {
	t, ok := s.upgradeTo(giveProtocol, w, r)
	if !ok {
		return
	}
	defer t.Close()
	err := t.SetDeadline(time.Now().Add(giveTime))
	var text json.RawMessage
	var fds []int
	if err == nil {
		fds, err = t.Hear(&text)
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
	t.Say(g) // the caller may have hung up
}

// upgradeTo has the controller's connection speak another protocol. If ok is false, the
// caller has its answer.
func (s *Server) upgradeTo(protocol string, w http.ResponseWriter, r *http.Request) (t Talk, ok bool) {
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

// answerPrograms gives the controller the programs for a packet socket, which are the filter
// of the socket and the program at tc ingress; or that of a tunnel or tap. It gives no descriptor
// if there are none.
func (s *Server) answerPrograms(w http.ResponseWriter, r *http.Request) {
	var q ProgramsQuery
	if t, ok := s.hearQuery(w, r, &q); ok {
		defer t.Close()
		t.Say(Given{}, s.open.Programs(q)...) // the caller may have hung up
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
		s.open.LendPort(no, func(why string, fds []int) { t.Say(Given{Why: why}, fds...) })
	}
}

// answerPause has ports receive nothing until the controller hangs up, or for giveTime.
func (s *Server) answerPause(w http.ResponseWriter, r *http.Request) {
	t, ok := s.hearQuery(w, r, &struct{}{})
	if !ok {
		return
	}
	defer t.Close()
	defer s.open.PausePorts()()
	if t.Say(Given{}) == nil {
		t.Read(make([]byte, 1)) // the controller hangs up, or the deadline passes
	}
}

// hearQuery reads what the controller asks for. If ok is false, the caller has its answer. The
// client speaks first: what follows the 101 at once, its HTTP reader may take.
func (s *Server) hearQuery(w http.ResponseWriter, r *http.Request, q any) (t Talk, ok bool) {
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
		fds, err = t.Hear(q)
		CloseDescriptors(fds)
	}
	if err != nil {
		t.Close()
	}
	return t, err == nil
}

// GivePort gives the switch a port with copies of its descriptors. The caller's own stay
// open.
func (c *Client) GivePort(p *PortSpec, fds []int) error {
	_, _, err := c.ask(portPath(p.No)+"/give", p, fds...)
	return err
}

// LendPort is copies of a port's descriptors, which are the caller's, and the reason for its
// driver. A port that is not there has none, nor has one on AF_XDP of a switch that is not
// confined. By the copies the port outlives the switch:
// another switch can be given them, and packets that nobody has received wait.
func (c *Client) LendPort(no uint32) (why string, fds []int, err error) {
	g, fds, err := c.ask(portPath(no)+"/lend", struct{}{})
	return g.Why, fds, err
}

// PausePorts has the switch receive nothing from its ports until resume is called, or for ten
// seconds. Frames wait meanwhile. So ports that are given in between begin together.
func (c *Client) PausePorts() (resume func(), err error) {
	t, err := c.upgradeTo(giveProtocol, "/v1/ports/pause")
	if err != nil {
		return nil, err
	}
	if err = t.Say(struct{}{}); err == nil {
		_, err = t.Hear(&Given{})
	}
	if err != nil {
		return nil, errors.Join(&AwayError{c.socket, err}, t.Close())
	}
	return func() { t.Close() }, nil
}

// GiveEgresses says where Egresses are, and gives the switch copies of sockets that receive
// there.
func (c *Client) GiveEgresses(e *TunnelEgresses, fds []int) error {
	_, _, err := c.ask("/v1/tunnel/egresses/give", e, fds...)
	return err
}

// ProgramsQuery says which programs are asked for: those of packet sockets if it is empty.
type ProgramsQuery struct {
	Tunnel string `json:"tunnel,omitempty"` // its kind
	IPv6   bool   `json:"ipv6,omitempty"`   // the tunnel goes over IPv6
	Driver string `json:"driver,omitempty"` // tap
}

// Programs are descriptors of the filter and the ingress program that a packet socket is
// to have before it is given. With a kind of tunnel, it is the one program of that tunnel's
// link, and with a driver, that of its device. There are none if the kernel is to forward
// nothing. They are the caller's. A switch that knows no such program gives two in its place.
func (c *Client) Programs(q ProgramsQuery) ([]int, error) {
	_, fds, err := c.ask("/v1/offload/programs", q)
	return fds, err
}

// ask says a value with copies of descriptors, and hears the answer. Its descriptors are the
// caller's.
func (c *Client) ask(path string, v any, fds ...int) (g Given, got []int, err error) {
	t, err := c.upgradeTo(giveProtocol, path)
	if err != nil {
		return g, nil, err
	}
	defer t.Close()
	if err = t.Say(v, fds...); err == nil {
		got, err = t.Hear(&g)
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

// upgradeTo opens a connection that speaks another protocol.
func (c *Client) upgradeTo(protocol, path string) (t Talk, err error) {
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
	return Talk{conn.(*net.UnixConn)}, nil
}
