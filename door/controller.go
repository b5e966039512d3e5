package door

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
)

// The controller of a switch: the caller that keeps a request POST /v1/controller open. It gets
// packet-ins, and only it changes the switch. There is only one. Another is refused, or takes
// over if it asks to. Without a controller, any caller that may open the socket can change the
// switch.

// eventRoom is the number of events that wait for a slow controller.
const eventRoom = 256

// controllers holds the connected controller, if there is one.
type controllers struct {
	mu  sync.Mutex
	now *controller
	// onAway is called when a controller comes or goes, with whether none is left. onTTL is the
	// function of Server.OnTTL. The caller holds mu.
	onAway, onTTL func(bool)
}

// controller is a connected controller.
type controller struct {
	name, token string
	events      chan Event
	missed      uint64
	successor   chan string // the name of the controller that takes over
}

// newToken is 128 random bits in hexadecimal.
func newToken() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}

func (c *controllers) name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil {
		return ""
	}
	return c.now.name
}

// admit returns an error if a request that changes the switch is not the controller's.
func (c *controllers) admit(r *http.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil || r.Header.Get(controllerHeader) == c.now.token {
		return nil
	}
	return fmt.Errorf("controller %q is connected, and only it changes the switch; POST /v1/controller?take-over=1 takes over from it", c.now.name)
}

// connectController makes a caller the controller.
func (c *controllers) connectController(name string, takeOver bool) (*controller, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now != nil && !takeOver {
		return nil, fmt.Errorf("controller %q is connected; take-over=1 takes over from it", c.now.name)
	}
	if c.now != nil {
		c.now.successor <- name
	}
	c.now = &controller{name: name, token: newToken(), events: make(chan Event, eventRoom), successor: make(chan string, 1)}
	c.onAway(false)
	return c.now, nil
}

// OnTTL sets f to be called with whether the controller wants packets whose TTL ends at a
// dec_ttl. Call it before the first request.
func (s *Server) OnTTL(f func(bool)) { s.controllers.onTTL = f }

// wantTTL records whether a controller wants packets whose TTL ends.
func (c *controllers) wantTTL(who *controller, wants bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == who {
		c.onTTL(wants)
	}
}

func (c *controllers) removeController(who *controller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == who {
		c.now = nil
		c.onAway(true)
		c.onTTL(false)
	}
}

// sendEvent sends an event to the controller. A controller that does not read loses it.
func (c *controllers) sendEvent(e Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil {
		return
	}
	e.Missed = c.now.missed
	select {
	case c.now.events <- e:
	default:
		c.now.missed++
	}
}

// serve answers POST /v1/controller until its caller leaves.
func (c *controllers) serve(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	if name == "" {
		http.Error(w, "name= is missing: who is the controller?", http.StatusBadRequest)
		return
	}
	who, err := c.connectController(name, r.URL.Query().Get("take-over") == "1")
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	defer c.removeController(who)
	c.wantTTL(who, r.URL.Query().Get("invalid-ttl") == "1")
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := stream{json.NewEncoder(w), http.NewResponseController(w)}
	err = out.send(&Event{Token: who.token})
	for err == nil {
		select {
		case <-r.Context().Done():
			return
		case by := <-who.successor:
			out.send(&Event{TakenOverBy: by})
			return
		case e := <-who.events:
			err = out.send(&e)
		}
	}
}
