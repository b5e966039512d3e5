package door

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"sync"
)

// A switch holds descriptors for its controller without using them. A kernel object that exists
// while a descriptor is open so outlives a killed controller: the next one borrows copies. The
// descriptors have a value and a name:
//
//	POST /v1/held/NAME/give   the value as JSON with its descriptors, after an upgrade (give.go); they
//	                          replace earlier ones. Without descriptors the name becomes free
//	POST /v1/held/NAME/lend   Given, with the value and copies of its descriptors
//
// A switch that takes over from another gets all of them.

// maxHeld is the largest number of names.
const maxHeld = 16

// errManyHeld is the error for one more name.
var errManyHeld = errors.New("the switch holds descriptors under 16 names, and takes no further one")

// Held is a value with its descriptors.
type Held struct {
	Value       json.RawMessage
	Descriptors []int
}

// held has everything that a switch holds.
type held struct {
	mu     sync.Mutex
	byName map[string]Held
}

// Hold stores a value with its descriptors, which belong to the switch from then on, also after
// an error.
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

// Held has everything that the switch holds, by name. It belongs to the switch. No request
// changes it while the server is frozen.
func (s *Server) Held() map[string]Held {
	s.held.mu.Lock()
	defer s.held.mu.Unlock()
	return maps.Clone(s.held.byName)
}

// answerGiveHeld stores the controller's value and descriptors.
func (s *Server) answerGiveHeld(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	s.receiveGiven(w, r, "held "+name, func(text []byte, fds []int) error { return s.Hold(name, Held{text, fds}) })
}

// answerLendHeld gives the controller copies of the descriptors under a name.
func (s *Server) answerLendHeld(w http.ResponseWriter, r *http.Request) {
	if t, ok := s.hearQuery(w, r, &struct{}{}); ok {
		defer t.Close()
		s.held.mu.Lock()
		defer s.held.mu.Unlock()
		v := s.held.byName[r.PathValue("name")]
		t.Send(Given{Value: v.Value}, v.Descriptors...) // the caller may have hung up
	}
}

// GiveHeld stores a value with copies of descriptors in the switch. It replaces those under the
// name. Without descriptors it frees the name.
func (c *Client) GiveHeld(name string, v any, fds []int) error {
	_, _, err := c.exchangeDescriptors(heldPath(name)+"/give", v, fds...)
	return err
}

// LendHeld reads the value under a name into v. The returned descriptors are copies and belong to
// the caller. If there are none, the switch holds nothing under the name.
func (c *Client) LendHeld(name string, v any) ([]int, error) {
	g, fds, err := c.exchangeDescriptors(heldPath(name)+"/lend", struct{}{})
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
