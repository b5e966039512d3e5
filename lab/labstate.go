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

// State is the lab's state on disk. Other commands find the lab by it, and can remove one
// that died half-way. It is written before the first namespace is made.
type State struct {
	// ID is five hexadecimal digits, a part of each name of the lab.
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	// Up says that the lab is complete.
	Up bool `json:"up"`
	// Creator is the process that made the lab.
	Creator Process `json:"creator"`
	// Transient says that the lab lives no longer than its creator.
	Transient bool `json:"transient,omitempty"`
	// Nodes is the number of Nodes.
	Nodes int `json:"nodes"`
	// IPv6Underlay says that the tunnel uses IPv6.
	IPv6Underlay bool `json:"ipv6Underlay,omitempty"`
	// Tunnel is the tunnel's type.
	Tunnel string `json:"tunnel"`
	// EncapMode is the agents' trafficEncapMode.
	EncapMode string `json:"encapMode,omitempty"`
	// Uplink is the kind of the Nodes' eth0.
	Uplink Uplink `json:"uplink,omitempty"`
	// UnderlayOffloads says that the Nodes leave checksums and segments to the underlay.
	UnderlayOffloads bool `json:"underlayOffloads,omitempty"`
	// Driver is the driver of the pods' ports.
	Driver string       `json:"driver"`
	Agents []AgentState `json:"agents,omitempty"`
}

// AgentState is a Node's agent process.
type AgentState struct {
	Node    string  `json:"node"`
	Process Process `json:"process"`
}

// stateEnv is the environment variable of the directory for labs' state.
const stateEnv = "ANTRAIL_LAB_DIR"

// StateDir is the directory of labs' state: $ANTRAIL_LAB_DIR if it is set, below /run for
// root, otherwise below the user's runtime directory.
func StateDir() string {
	if dir := os.Getenv(stateEnv); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" && os.Geteuid() != 0 {
		return filepath.Join(dir, "antrail/lab")
	}
	return "/run/antrail/lab"
}

// removeEmpty removes the directory of labs' state, and antrail's directory above it, if
// they are empty.
func removeEmpty(dir string) {
	if os.Remove(dir) == nil {
		os.Remove(filepath.Dir(dir)) // refused unless it is empty
	}
}

const stateFile = "state.json"

// newState makes the directory of a new lab, with a new ID.
func newState(dir string, s State) (*Lab, error) {
	self, ok := processOf(os.Getpid())
	if !ok {
		return nil, errors.New("/proc has no entry of this process")
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
		if errors.Is(err, os.ErrExist) || errors.Is(err, os.ErrNotExist) { // the last lab's Down removed dir meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		return l, l.save()
	}
}

// save writes the state file and renames it into place.
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

// load reads a lab's state, and finds agents that were started by hand. If a directory has
// no state file, the lab died before it made anything.
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

// List finds all labs of a state directory, oldest first.
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

// isID says whether a directory's name is a lab's ID. Down removes namespaces by that name,
// so it must not be "test" or the like.
func isID(name string) bool {
	return len(name) == 5 && strings.Trim(name, "0123456789abcdef") == ""
}

// ErrNone is the error of Find if there is no lab.
var ErrNone = errors.New("no lab is up; make one with: antrail lab up")

// Find is the lab with an ID. If id is empty, it is the only lab.
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

// Doomed are the labs that `lab down ID` removes. Without an ID they are all dead labs, and
// the one that is up. Several that are up are an error, so that no lab is removed by
// mistake.
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

// Sweep removes all dead labs.
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

// Dead says that the lab can be removed. It was never completed, or is transient, and its
// creator is gone.
func (l *Lab) Dead() bool {
	return (!l.State.Up || l.State.Transient) && !l.State.Creator.alive()
}
