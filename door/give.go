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
	if asked := r.Header.Get("Upgrade"); asked != giveProtocol {
		http.Error(w, fmt.Sprintf("descriptors come after an upgrade to %s, not to %.40q", giveProtocol, asked), http.StatusUpgradeRequired)
		return
	}
	if err := s.controllers.admit(r); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	t, err := Hijack(w, giveProtocol)
	if err != nil {
		return // the caller has gone
	}
	defer t.Close()
	var g Given
	if err := s.takePort(t, no); err != nil {
		g.Error = err.Error()
	}
	t.Say(g) // the caller may have hung up
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
	conn, err := net.DialTimeout("unix", c.socket, giveTime)
	if err != nil {
		return &AwayError{c.socket, err}
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(answerTime)); err != nil {
		return err
	}
	header := http.Header{}
	if token := c.token.Load(); token != nil {
		header.Set(controllerHeader, *token)
	}
	if err := Upgrade(conn, portPath(p.No)+"/give", giveProtocol, header); err != nil {
		return fmt.Errorf("the switch at %s does not take port %d %q: %w", c.socket, p.No, p.Name, err)
	}
	t := Talk{conn.(*net.UnixConn)}
	if err := t.Say(p, fds...); err != nil {
		return &AwayError{c.socket, err}
	}
	var g Given
	got, err := t.Hear(&g)
	CloseDescriptors(got)
	switch {
	case err != nil:
		return &AwayError{c.socket, err}
	case g.Error != "":
		return errors.New(g.Error)
	}
	return nil
}
