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

// The container runtime's side of the plugin is two files: the program, and the
// network configuration, with whose appearance a Node becomes Ready. An agent that
// is told where they belong puts the first there when it starts, and the second,
// which names its socket, when it knows the objects and has its ports. They stay
// when it stops: pods are deleted while an agent is replaced. Uninstall removes
// them.

// installPlugin copies the program that lies beside ours.
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

// runCNIConfig writes the network configuration when the switch has what the
// objects say, or a program.
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
		a.log.Error("no network configuration for the container runtime: no pod comes to this Node", "error", err)
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

// replaceFile writes a file so that nobody sees a part of it; one that is as it
// should be stays.
func replaceFile(path string, content []byte, mode os.FileMode) error {
	if now, err := os.ReadFile(path); err == nil && bytes.Equal(now, content) {
		return nil
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), ".antrail-*")
	if err != nil {
		return err
	}
	defer os.Remove(fresh.Name()) // nothing after the rename
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
