package config

import "path/filepath"

// CNIFiles are the paths of the files that the container runtime needs; "" for a file that the
// agent does not write.
type CNIFiles struct {
	// Plugin is where the agent copies the CNI plugin to, mostly /opt/cni/bin/antrail-cni.
	Plugin string `json:"plugin,omitempty"`
	// Config is where the agent writes the network configuration, mostly
	// /etc/cni/net.d/10-antrail.conflist.
	Config string `json:"config,omitempty"`
}

func (n *CNIFiles) check(c *Config, f *faults) {
	for key, path := range map[string]string{"plugin": n.Plugin, "config": n.Config} {
		f.check(path == "" || filepath.IsAbs(path), "cni.%s: %q is not an absolute path", key, path)
	}
	f.check(*n == CNIFiles{} || c.Flows == "", "cni: not together with flows: no pods are known there")
}

// files are the files that Uninstall removes.
func (n *CNIFiles) files() (all []string) {
	for _, f := range []string{n.Config, n.Plugin} {
		if f != "" {
			all = append(all, f)
		}
	}
	return all
}
