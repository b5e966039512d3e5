package pipeline

import (
	"errors"
	"fmt"
	"slices"

	"github.com/antrail/antrail/agent/podports"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/control/store"
)

// Manifests are the objects of a cluster as files, seen from one of its Nodes.
type Manifests struct {
	Path string // a file, or a directory with all files below it
	Node string
	// Report receives objects that are not in force, with the reason; nil: no reports.
	Report func(manifest.Problem)
}

// String is the path.
func (m Manifests) String() string { return m.Path }

// Load makes a switch without ports that runs the entries of the Node's objects. Faults of
// objects go to Report. The error is for a path that cannot be read, and a Node that does not
// exist.
func (m Manifests) Load(o Options) (*Pipeline, error) {
	var wrong []manifest.Problem
	cluster, err := m.Cluster(func(p manifest.Problem) {
		wrong = append(wrong, p)
		if m.Report != nil {
			m.Report(p)
		}
	})
	if err != nil {
		return nil, err
	}
	program, objects, err := control.Offline(cluster, m.Node)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Path, err)
	}
	p, err := loadProgram(m, program, o)
	if err != nil {
		return nil, err
	}
	p.Objects, p.Made = objects, control.MadePorts(cluster)
	p.Secured = podports.SecurityOf(cluster.NodeConfig(m.Node))
	p.Problems = func() []manifest.Problem { return wrong }
	return p, nil
}

// Cluster reads the files.
func (m Manifests) Cluster(report func(manifest.Problem)) (*cluster.Cluster, error) {
	cluster, problems, err := store.LoadManifests(m.Path)
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		if report != nil && !p.Ignored {
			report(p)
		}
	}
	return cluster, nil
}

// ManifestNodes are the names of Nodes that have a NodeConfig in the manifests.
func ManifestNodes(path string) ([]string, error) {
	cluster, err := Manifests{Path: path}.Cluster(nil)
	if err != nil {
		return nil, err
	}
	var all []string
	for k := range cluster.NodeConfigs {
		all = append(all, k.Name)
	}
	slices.Sort(all)
	if all == nil {
		return nil, fmt.Errorf("%s: there is no NodeConfig", path)
	}
	return all, nil
}

// PortAddresses are the ports' MAC addresses in the Node's NodeConfig.
func (m Manifests) PortAddresses() (map[[6]byte]uint32, error) {
	cluster, err := m.Cluster(nil) // Load has reported problems
	if err != nil {
		return nil, err
	}
	config := cluster.NodeConfig(m.Node)
	if config == nil {
		return nil, errors.New("give the port where packets enter: --in-port, or a NodeConfig with the ports' addresses")
	}
	all := map[[6]byte]uint32{config.Gateway.MAC: config.Gateway.OFPort}
	for _, p := range config.Ports {
		if p.MAC != [6]byte{} {
			all[p.MAC] = p.OFPort
		}
	}
	return all, nil
}
