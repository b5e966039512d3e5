package door

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"sync"
)

// Descriptors that a switch holds for its controller, and does not use. What the kernel keeps as
// long as they are open outlives a controller that is killed: the next one borrows copies. They come
// with a value, under a name:
//
//	POST /v1/held/NAME/give   the value as JSON with its descriptors, after an upgrade (give.go); they
//	                          take the place of those before. Without descriptors the name is free
//	POST /v1/held/NAME/lend   Given, with the value and copies of its descriptors
//
// The switch that takes over from another gets all of them.

// maxHeld bounds the names.
const maxHeld = 16

// errManyHeld is the error of a further name.
var errManyHeld = errors.New("the switch holds descriptors under 16 names, and takes no further one")

// Held is a value with its descriptors.
type Held struct {
	Value       json.RawMessage
	Descriptors []int
}

// held is all that a switch holds.
type held struct {
	mu     sync.Mutex
	byName map[string]Held
}

// Hold holds a value with its descriptors, which belong to the switch from then on, also after an
// error.
func (s *Server) Hold(name string, v Held) error {
	h := &s.held
	h.mu.Lock()
	defer h.mu.Unlock()
	before, there := h.byName[name]
	if !there && len(h.byName) >= maxHeld {
		CloseDescriptors(v.Descriptors)
		return errManyHeld
	}
	CloseDescriptors(before.Descriptors)
	if len(v.Descriptors) == 0 {
		delete(h.byName, name)
		return nil
	}
	if h.byName == nil {
		h.byName = map[string]Held{}
	}
	h.byName[name] = v
	return nil
}

// Held is all that the switch holds, by name. It stays the switch's: no request changes it while the
// server is frozen.
func (s *Server) Held() map[string]Held {
	s.held.mu.Lock()
	defer s.held.mu.Unlock()
	return maps.Clone(s.held.byName)
}

// answerGiveHeld holds what the controller gives.
func (s *Server) answerGiveHeld(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	s.takeGiven(w, r, "held "+name, func(text []byte, fds []int) error { return s.Hold(name, Held{text, fds}) })
}

// answerLendHeld gives the controller copies of what the switch holds under a name.
func (s *Server) answerLendHeld(w http.ResponseWriter, r *http.Request) {
	if t, ok := s.hearQuery(w, r, &struct{}{}); ok {
		defer t.Close()
		s.held.mu.Lock()
		defer s.held.mu.Unlock()
		v := s.held.byName[r.PathValue("name")]
		t.Say(Given{Value: v.Value}, v.Descriptors...) // the caller may have hung up
	}
}

// GiveHeld has the switch hold a value with copies of descriptors, in place of what it held under the
// name. Without descriptors it holds nothing there.
func (c *Client) GiveHeld(name string, v any, fds []int) error {
	_, _, err := c.ask(heldPath(name)+"/give", v, fds...)
	return err
}

// LendHeld reads the value that the switch holds under a name into v. The descriptors are copies, and
// the caller's. If there are none, the switch holds nothing there.
func (c *Client) LendHeld(name string, v any) ([]int, error) {
	g, fds, err := c.ask(heldPath(name)+"/lend", struct{}{})
	if err == nil && len(fds) > 0 {
		err = json.Unmarshal(g.Value, v)
	}
	if err != nil {
		CloseDescriptors(fds)
		return nil, err
	}
	return fds, nil
}

func heldPath(name string) string { return "/v1/held/" + url.PathEscape(name) }
