package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/cni"
	"github.com/antrail/antrail/deploy"
)

// The container runtime's side of the plugin is two files: the program, and the network
// configuration. A Node becomes Ready when the network configuration appears.
//
// If the configuration names their paths, the agent installs the program when it starts. It
// writes the network configuration, which names its socket, when it knows the objects and has
// its ports. Both files stay when the agent stops: pods are deleted while an agent is replaced.
// Uninstall removes them.

// installPlugin copies the plugin's program from the directory of the agent's program.
func installPlugin(n *config.CNIFiles) error {
	if n.Plugin == "" {
		return nil
	}
	own, err := os.Executable()
	if err != nil {
		return err
	}
	program, err := os.ReadFile(filepath.Join(filepath.Dir(own), cni.Type))
	if err != nil {
		return fmt.Errorf("CNI plugin: %w", err)
	}
	if err := replaceFile(n.Plugin, program, 0o755); err != nil {
		return fmt.Errorf("CNI plugin: %w", err)
	}
	return nil
}

// runCNIConfig writes the network configuration once the switch has the entries of the objects
// or of a program.
func (a *Agent) runCNIConfig(ctx context.Context) {
	path := a.config.CNI.Config
	if path == "" {
		return
	}
	if a.live != nil {
		select {
		case <-ctx.Done():
			return
		case <-a.live.synced:
		}
	}
	text, err := conflist(a.config.Socket)
	if err == nil {
		err = replaceFile(path, text, 0o644)
	}
	if err != nil {
		a.log.Error("cannot write the container runtime's network configuration: this Node gets no pods", "error", err)
		return
	}
	a.log.Info("network configuration written for the container runtime", "file", path)
}

// conflist is the network configuration with the agent's socket.
func conflist(socket string) ([]byte, error) {
	var list struct {
		Version string           `json:"cniVersion"`
		Name    string           `json:"name"`
		Plugins []map[string]any `json:"plugins"`
	}
	if err := json.Unmarshal(deploy.Conflist, &list); err != nil {
		return nil, err
	}
	whole, err := filepath.Abs(socket)
	if err != nil {
		return nil, err
	}
	list.Plugins[0]["socket"] = whole
	text, err := json.MarshalIndent(list, "", "  ")
	return append(text, '\n'), err
}

// replaceFile replaces a file in one step, so that no reader sees a part of it. A file that has
// the content already stays.
func replaceFile(path string, content []byte, mode os.FileMode) error {
	if now, err := os.ReadFile(path); err == nil && bytes.Equal(now, content) {
		return nil
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), ".antrail-*")
	if err != nil {
		return err
	}
	defer os.Remove(fresh.Name()) // fails after the rename, as it should
	defer fresh.Close()
	if _, err := fresh.Write(content); err != nil {
		return err
	}
	if err := fresh.Chmod(mode); err != nil {
		return err
	}
	if err := fresh.Sync(); err != nil {
		return err
	}
	return os.Rename(fresh.Name(), path)
}
