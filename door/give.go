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
// Whatever happens, the switch closes the descriptors that no port has, and the client's
// own stay open.

// giveProtocol names this; its number changes with what is said.
const giveProtocol = "antrail-port/1"

// giveTime bounds how long either side waits for a message.
const giveTime = 10 * time.Second

// ErrConfined says that a switch opens no port by name.
var ErrConfined = errors.New("the switch is confined and opens no port: give it the port with its descriptors (POST /v1/ports/N/give)")

// Given is what the switch answers.
type Given struct {
	// Error says why there is no port; "" if there is one.
	Error string `json:"error,omitempty"`
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
	t, ok := s.upgrade(w, r)
	if !ok {
		return
	}
	defer t.Close()
	var g Given
	if err := s.takePort(t, no); err != nil {
		g.Error = err.Error()
	}
	t.Say(g) // the caller may have hung up
}

// upgrade has the controller's connection speak giveProtocol. If ok is false, the caller
// has its answer.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request) (t Talk, ok bool) {
	if asked := r.Header.Get("Upgrade"); asked != giveProtocol {
		http.Error(w, fmt.Sprintf("descriptors come after an upgrade to %s, not to %.40q", giveProtocol, asked), http.StatusUpgradeRequired)
		return t, false
	}
	if err := s.controllers.admit(r); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return t, false
	}
	t, err := Hijack(w, giveProtocol)
	return t, err == nil
}

// answerPrograms gives the controller the programs for a packet socket: the filter of the
// socket and the program at tc ingress, or no descriptor if there are none.
func (s *Server) answerPrograms(w http.ResponseWriter, r *http.Request) {
	if s.open == nil {
		http.Error(w, errNoPorts.Error(), http.StatusBadRequest)
		return
	}
	t, ok := s.upgrade(w, r)
	if !ok {
		return
	}
	defer t.Close()
	if t.SetDeadline(time.Now().Add(giveTime)) != nil {
		return
	}
	// The client speaks first: what follows the 101 at once, its HTTP reader may take.
	var q struct{}
	if fds, err := t.Hear(&q); err == nil {
		CloseDescriptors(fds)
		t.Say(Given{}, s.open.Programs()...) // the caller may have hung up
	}
}

// takePort hears of a port, and makes it.
func (s *Server) takePort(t Talk, no uint32) error {
	if err := t.SetDeadline(time.Now().Add(giveTime)); err != nil {
		return err
	}
	var text json.RawMessage
	fds, err := t.Hear(&text)
	if err != nil {
		return fmt.Errorf("port %d: the message with its descriptors: %w", no, err)
	}
	var p PortSpec
	if err := decode(bytes.NewReader(text), &p); err != nil {
		CloseDescriptors(fds)
		return fmt.Errorf("port %d: %w", no, err)
	}
	p.No = no
	return s.open.GivePort(&p, fds)
}

// GivePort gives the switch a port with copies of its descriptors. The caller's own stay
// open.
func (c *Client) GivePort(p *PortSpec, fds []int) error {
	t, err := c.upgrade(portPath(p.No) + "/give")
	if err != nil {
		return fmt.Errorf("port %d %q: %w", p.No, p.Name, err)
	}
	defer t.Close()
	if err := t.Say(p, fds...); err != nil {
		return &AwayError{c.socket, err}
	}
	got, err := c.hear(t)
	CloseDescriptors(got)
	return err
}

// Programs are descriptors of the filter and the ingress program that a packet socket is
// to have before it is given; none if the kernel is to forward nothing. They are the
// caller's.
func (c *Client) Programs() ([]int, error) {
	t, err := c.upgrade("/v1/offload/programs")
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if err := t.Say(struct{}{}); err != nil {
		return nil, &AwayError{c.socket, err}
	}
	return c.hear(t)
}

// upgrade opens a connection that speaks giveProtocol.
func (c *Client) upgrade(path string) (t Talk, err error) {
	conn, err := net.DialTimeout("unix", c.socket, giveTime)
	if err != nil {
		return t, &AwayError{c.socket, err}
	}
	header := http.Header{}
	if token := c.token.Load(); token != nil {
		header.Set(controllerHeader, *token)
	}
	if err = conn.SetDeadline(time.Now().Add(answerTime)); err == nil {
		err = Upgrade(conn, path, giveProtocol, header)
	}
	if err != nil {
		return t, errors.Join(fmt.Errorf("the switch at %s: %s: %w", c.socket, path, err), conn.Close())
	}
	return Talk{conn.(*net.UnixConn)}, nil
}

// hear reads what the switch answers. The descriptors are the caller's.
func (c *Client) hear(t Talk) ([]int, error) {
	var g Given
	fds, err := t.Hear(&g)
	switch {
	case err != nil:
		return nil, &AwayError{c.socket, err}
	case g.Error != "":
		CloseDescriptors(fds)
		return nil, errors.New(g.Error)
	}
	return fds, nil
}
