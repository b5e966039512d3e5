package assignments

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/switchd"
)

// Assignments is the file, as JSON.
type Assignments struct {
	Schema int             `json:"schema"` // changes when the meaning of other fields does
	Config string          `json:"config"` // identity of the configuration
	Ports  []Port          `json:"ports"`  // ports of pods
	Memory *control.Memory `json:"memory"`
}

// Port is a pod's port.
type Port struct {
	config.Port
	OneWay bool   // as config.Port.NoReturn
	Access uint16 `json:",omitempty"` // as config.Port.VLAN
}

const (
	// schema is the Schema of files that this version writes and reads.
	schema = 1
	// maxSize bounds the file. It has no entries, which take most of a switch's state.
	maxSize = 64 << 20
)

// New makes the assignments of an agent with a configuration.
func New(c *config.Config, ports []config.Port, m *control.Memory) *Assignments {
	a := &Assignments{Schema: schema, Config: identity(c), Memory: m}
	for _, p := range ports {
		a.Ports = append(a.Ports, Port{Port: p, OneWay: p.NoReturn, Access: p.VLAN})
	}
	return a
}

// Write replaces the file.
func (a *Assignments) Write(path string) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return switchd.WriteOwnFile(path, text)
}

// Read reads the file of an agent with the same configuration. The error says why it cannot be
// used.
func Read(path string, c *config.Config) (*Assignments, error) {
	text, err := switchd.ReadOwnFile(path, maxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("there is none")
	}
	if err != nil {
		return nil, err
	}
	a, err := parse(text)
	if err == nil && a.Config != identity(c) {
		err = errors.New("it belongs to another configuration")
	}
	return a, err
}

// parse reads the text of a file. control.Reconciler.Restore checks the numbers.
func parse(text []byte) (*Assignments, error) {
	a := &Assignments{}
	if err := json.Unmarshal(text, a); err != nil {
		return nil, err
	}
	if a.Schema != schema {
		return nil, fmt.Errorf("it has schema %d, not %d", a.Schema, schema)
	}
	if a.Memory == nil {
		return nil, errors.New("it has no numbers")
	}
	for i, p := range a.Ports {
		if p.Name == "" || p.Link == "" || p.OFPort == 0 || p.OFPort >= 0xff00 {
			return nil, fmt.Errorf("port %q has no name, link or number", p.Name)
		}
		a.Ports[i].NoReturn, a.Ports[i].VLAN = p.OneWay, p.Access
	}
	return a, nil
}

// PodPorts are the pods' ports.
func (a *Assignments) PodPorts() []config.Port {
	all := slices.Grow([]config.Port{}, len(a.Ports))
	for _, p := range a.Ports {
		all = append(all, p.Port)
	}
	return all
}

// identity is a digest of the parts of a configuration that assignments depend on. With another
// Node, gateway or peers, ports and addresses may belong to others.
func identity(c *config.Config) string {
	b, err := json.Marshal(struct {
		Node    string
		Gateway config.Gateway
		Tunnel  config.Tunnel
		Pods    any
		Peers   []config.Peer
		Ports   []config.Port
	}{c.NodeName, c.Gateway, c.Tunnel, c.PodCIDRs, c.Peers, c.Ports})
	if err != nil {
		return err.Error() // cannot happen with plain data
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
