package agent

import (
	"errors"
	"fmt"
	"slices"

	"github.com/antrail/antrail/control"
)

// Manifests are the objects of a cluster as files, seen from one of its Nodes.
type Manifests struct {
	Path string // a file, or a directory with all files below it
	Node string
	// Report is told what of the files is not in force, and why; nil: nobody.
	Report func(control.Problem)
}

// String is the path.
func (m Manifests) String() string { return m.Path }

// load makes a switch without ports that runs the entries of the Node's
// objects. What is wrong with some of them goes to Report; the error is for a
// path that cannot be read and for a Node that is not there.
func (m Manifests) load(o options) (*pipeline, error) {
	var wrong []control.Problem
	cluster, err := m.cluster(func(p control.Problem) {
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
	p.objects, p.made = objects, cluster.MadePorts()
	p.secured = securityOf(cluster.NodeConfig(m.Node))
	p.problems = func() []control.Problem { return wrong }
	return p, nil
}

// cluster reads the files.
func (m Manifests) cluster(report func(control.Problem)) (*control.Cluster, error) {
	cluster, problems, err := control.LoadManifests(m.Path)
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

// ManifestNodes are the Nodes that manifests have a NodeConfig of, by name.
func ManifestNodes(path string) ([]string, error) {
	cluster, err := Manifests{Path: path}.cluster(nil)
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

// portAddresses are the addresses that the Node's NodeConfig gives its ports.
func (m Manifests) portAddresses() (map[[6]byte]uint32, error) {
	cluster, err := m.cluster(nil) // load has reported
	if err != nil {
		return nil, err
	}
	config := cluster.NodeConfig(m.Node)
	if config == nil {
		return nil, errors.New("say where packets come in: --in-port, or a NodeConfig that gives the ports' addresses")
	}
	all := map[[6]byte]uint32{config.Gateway.MAC: config.Gateway.OFPort}
	for _, p := range config.Ports {
		if p.MAC != [6]byte{} {
			all[p.MAC] = p.OFPort
		}
	}
	return all, nil
}
