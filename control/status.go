package control

// State is how far an object has come.
type State string

// States of an object: in the switch; not yet, with what it waits for or what
// failed; not taken, and why.
const (
	Installed State = "installed"
	Pending   State = "pending"
	Refused   State = "refused"
)

// Status is how far one object has come on this Node.
type Status struct {
	Object  Key    `json:"object"`
	State   State  `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Entries int    `json:"entries"` // that it wants and the switch has
	Groups  int    `json:"groups,omitempty"`
}
