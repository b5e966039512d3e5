package lab

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// State is what a lab leaves on disk, so that other commands find it and a lab
// that died half-way can be taken down. It is written before the first
// namespace is made.
type State struct {
	// ID is five hexadecimal digits, part of every name of the lab.
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	// Up says that everything was made.
	Up bool `json:"up"`
	// Creator is the process that made the lab or is making it.
	Creator Process `json:"creator"`
	// Transient says that the lab is to live no longer than its creator.
	Transient bool `json:"transient,omitempty"`
	// Nodes is how many of the topology's Nodes there are.
	Nodes int `json:"nodes"`
	// IPv6Underlay says that the tunnel goes over IPv6.
	IPv6Underlay bool `json:"ipv6Underlay,omitempty"`
	// Tunnel is the tunnel's type.
	Tunnel string `json:"tunnel"`
	// EncapMode is the agents' trafficEncapMode.
	EncapMode string `json:"encapMode,omitempty"`
	// Uplink is what the Nodes' eth0 is.
	Uplink Uplink `json:"uplink,omitempty"`
	// UnderlayOffloads says that checksums and segments are left to the underlay.
	UnderlayOffloads bool `json:"underlayOffloads,omitempty"`
	// Driver is that of the pods' ports.
	Driver string       `json:"driver"`
	Agents []AgentState `json:"agents,omitempty"`
}

// AgentState is a Node's agent process.
type AgentState struct {
	Node    string  `json:"node"`
	Process Process `json:"process"`
}

// stateEnv names another directory for the state of labs.
const stateEnv = "ANTRAIL_LAB_DIR"

// StateDir is where labs keep their state: $ANTRAIL_LAB_DIR if it is set, below
// /run for root, else below the user's runtime directory.
func StateDir() string {
	if dir := os.Getenv(stateEnv); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" && os.Geteuid() != 0 {
		return filepath.Join(dir, "antrail/lab")
	}
	return "/run/antrail/lab"
}

// removeEmpty removes the directory of all labs' state, and antrail's around
// it, as far as they are empty.
func removeEmpty(dir string) {
	if os.Remove(dir) == nil {
		os.Remove(filepath.Dir(dir)) // refused unless it is empty
	}
}

const stateFile = "state.json"

// newState makes the directory of a new lab, with an ID that no lab has.
func newState(dir string, s State) (*Lab, error) {
	self, ok := processOf(os.Getpid())
	if !ok {
		return nil, errors.New("no /proc")
	}
	s.Created, s.Creator = time.Now(), self
	for {
		var b [3]byte
		rand.Read(b[:])
		s.ID = fmt.Sprintf("%x", b)[:5]
		l := newLab(filepath.Join(dir, s.ID), s)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		err := os.Mkdir(l.Dir, 0o700)
		if errors.Is(err, os.ErrExist) || errors.Is(err, os.ErrNotExist) { // the last lab's Down took dir away meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		return l, l.save()
	}
}

// save writes the state file in one step.
func (l *Lab) save() error {
	b, err := json.MarshalIndent(&l.State, "", "  ")
	if err != nil {
		return err
	}
	tmp := filepath.Join(l.Dir, stateFile+".new")
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(l.Dir, stateFile))
}

// load reads a lab's state, and finds agents that were started by hand since. A
// directory without a state file is a lab that died before it made anything.
func load(dir string) (*Lab, error) {
	s := State{ID: filepath.Base(dir)}
	b, err := os.ReadFile(filepath.Join(dir, stateFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return newLab(dir, s), nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("%s/%s: %w", dir, stateFile, err)
	}
	if s.ID != filepath.Base(dir) || s.Nodes > len(TwoNodes().Nodes) || s.Nodes < 0 {
		return nil, fmt.Errorf("%s/%s: not the state of lab %s", dir, stateFile, filepath.Base(dir))
	}
	l := newLab(dir, s)
	l.adopt()
	return l, nil
}

// List finds all labs of a state directory, the oldest first.
func List(dir string) ([]*Lab, error) {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var all []*Lab
	for _, f := range files {
		if !f.IsDir() || !isID(f.Name()) {
			continue
		}
		l, err := load(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b *Lab) int { return a.State.Created.Compare(b.State.Created) })
	return all, nil
}

// isID tells a lab's directory from anything else: names made of its ID are
// removed, so it must not be "test" or the like.
func isID(name string) bool {
	return len(name) == 5 && strings.Trim(name, "0123456789abcdef") == ""
}

// ErrNone is the error of Find where there is no lab.
var ErrNone = errors.New("no lab is up; make one with: antrail lab up")

// Find is the lab with an ID, or the only one when id is empty.
func Find(dir, id string) (*Lab, error) {
	all, err := List(dir)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, l := range all {
		if l.State.ID == id || id == "" && len(all) == 1 {
			return l, nil
		}
		ids = append(ids, l.State.ID)
	}
	switch {
	case len(all) == 0:
		return nil, ErrNone
	case id == "":
		return nil, fmt.Errorf("there are several labs, say which with --lab: %v", ids)
	}
	return nil, fmt.Errorf("no lab %s; there are %v", id, ids)
}

// Doomed are the labs that `lab down ID` takes down: that one. Without an ID
// they are every dead lab, and the one that is up; several that are up are an
// error, so that nobody's lab goes by mistake.
func Doomed(dir, id string) ([]*Lab, error) {
	if id != "" {
		l, err := Find(dir, id)
		if err != nil {
			return nil, err
		}
		return []*Lab{l}, nil
	}
	all, err := List(dir)
	if err != nil {
		return nil, err
	}
	alive := 0
	for _, l := range all {
		if !l.Dead() {
			alive++
		}
	}
	if alive > 1 {
		_, err := Find(dir, "")
		return nil, err
	}
	return all, nil
}

// Sweep takes down every dead lab.
func Sweep(dir string) error {
	all, err := List(dir)
	errs := []error{err}
	for _, l := range all {
		if l.Dead() {
			errs = append(errs, l.Down())
		}
	}
	return errors.Join(errs...)
}

// Dead says that nobody needs the lab any more: it was never completed, or was
// to live no longer than its creator, and that process is gone.
func (l *Lab) Dead() bool {
	return (!l.State.Up || l.State.Transient) && !l.State.Creator.alive()
}
