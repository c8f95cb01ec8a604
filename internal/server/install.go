package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"tributary/internal/account"
	"tributary/internal/audit"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operator"
	"tributary/internal/schema"
	"tributary/internal/secret"
)

// Installation is what a new installation is made of.
type Installation struct {
	Folder     string // of keys, documents and, without Database, of the database
	Database   string // sqlite:PATH or postgres://…; default: a file in Folder
	Password   string // file with the database's password, where its address has none
	PublicURL  string // default: http:// and the listen address
	Simulators string // where test keys file; default: none
	Operator   string // first operator, an admin
	Client     string // first client
	Live       bool   // it files with real authorities
	Countries  map[string]country.UseCase
	By         audit.Actor
	Log        *slog.Logger
}

// Installed says what was made. Secrets that existed before are zero.
type Installed struct {
	ConfigFile string // for --config of every command
	KeyFile    string // with the client's API key
	Password   secret.Secret
	APIKey     secret.Secret
}

const (
	configFileName = "tributary.json"
	clientKeyName  = "client.key"
)

// Install makes folders, master key, database, first operator, first client
// and the configuration file, in this order.
//
// Failure policy: the configuration file is written last and says that all is
// there. Without it a second call goes on where the first stopped and keeps
// what exists; with it nothing is touched.
func Install(ctx context.Context, in Installation) (made Installed, err error) {
	if in.Folder, err = filepath.Abs(in.Folder); err != nil {
		return made, err
	}
	made.ConfigFile, made.KeyFile = filepath.Join(in.Folder, configFileName), filepath.Join(in.Folder, clientKeyName)
	if _, err := os.Stat(made.ConfigFile); err == nil {
		return made, fault.New(fault.Invalid,
			"%s exists: the installation is complete; start it with tributary serve --config %s", made.ConfigFile, made.ConfigFile)
	}
	if err := onlyOurs(in.Folder); err != nil {
		return made, err
	}
	if in.Database == "" {
		in.Database = "sqlite:" + filepath.Join(in.Folder, "tributary.db")
	}
	if err := os.MkdirAll(filepath.Join(in.Folder, "documents"), 0o700); err != nil {
		return made, fmt.Errorf("create the folder: %w", err)
	}
	keyFile := filepath.Join(in.Folder, "master.key")
	if err := secret.CreateMasterFile(keyFile); err != nil && !errors.Is(err, fs.ErrExist) {
		return made, fmt.Errorf("create the master key: %w", err)
	}
	master, err := secret.OpenMaster("file:" + keyFile)
	if err != nil {
		return made, err
	}
	d, err := in.open(ctx)
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if _, err := schema.Migrate(ctx, d); err != nil {
		return made, err
	}
	if err := in.people(ctx, d, master, &made); err != nil {
		return made, err
	}
	return made, writeNew(made.ConfigFile, in.configuration())
}

// onlyOurs refuses a folder in which something is that an interrupted installation did not leave: backups of the
// installation would carry it, and its owner would not look for secrets there.
func onlyOurs(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Invalid, "%s cannot be used: %v", folder, err)
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == "documents", name == "master.key", name == clientKeyName, strings.HasPrefix(name, "tributary.db"):
		default:
			return fault.New(fault.Invalid, "%s is not empty: it has %s; name a new folder", folder, name)
		}
	}
	return nil
}

func (in *Installation) open(ctx context.Context) (*db.DB, error) {
	cfg := db.Config{URL: in.Database, Log: in.Log}
	if in.Password != "" {
		var err error
		if cfg.Password, err = secret.ReadFile(in.Password); err != nil {
			return nil, fault.New(fault.Invalid, "--database-password-file: %v", err)
		}
	}
	return db.Open(ctx, cfg)
}

// people makes the first operator and the first client.
func (in *Installation) people(ctx context.Context, d *db.DB, master *secret.Master, made *Installed) (err error) {
	accounts, err := OpenAccounts(ctx, Config{Log: in.Log}, d, master)
	if err != nil {
		return err
	}
	operators := operator.New(operator.Config{DB: d, Audit: accounts.AuditKey(), Log: in.Log})
	_, made.Password, err = operators.Create(ctx, in.By, operator.NewOperator{Name: in.Operator, Role: operator.Admin})
	if err != nil && fault.KindOf(err) != fault.Conflict {
		return err
	}
	// The key is on disk before the client is in the database: whoever is
	// interrupted in between has a key nobody knows, never a client without one.
	if made.APIKey, err = secret.ReadFile(made.KeyFile); errors.Is(err, fs.ErrNotExist) {
		made.APIKey = secret.NewAPIKey(in.Live).Text()
		err = writeNew(made.KeyFile, made.APIKey.RevealText()+"\n")
	}
	if err != nil {
		return err
	}
	_, _, err = accounts.CreateClient(ctx, in.By,
		account.NewClient{ID: in.Client, Live: in.Live, Key: made.APIKey, Config: account.Config{
			DisplayName: in.Client, Countries: in.Countries,
			Rate: account.Rate{PerSecond: account.RatePerSecondDefault, Burst: account.RateBurstDefault},
		}})
	if fault.KindOf(err) == fault.Conflict {
		made.APIKey, err = secret.Secret{}, nil
	}
	return err
}

func quoted(text string) string {
	raw, _ := json.Marshal(text) // a string always encodes
	return string(raw)
}

// writeNew writes a file for its owner alone and never over another.
func writeNew(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Sync(), file.Close())
}

// configuration is the file for --config, with the settings that most
// installations change sooner or later named and switched off.
func (in *Installation) configuration() string {
	public := "http://127.0.0.1:8080"
	if in.PublicURL != "" {
		public = in.PublicURL
	}
	password := `// "database-password-file": "/etc/tributary/database-password",`
	if in.Password != "" {
		password = `"database-password-file": ` + quoted(in.Password) + ","
	}
	simulators := ""
	if in.Simulators != "" {
		simulators = "\n  // Where clients with test keys file: tributary simulate listens there.\n  \"simulators\": " +
			quoted(in.Simulators) + ","
	}
	return strings.NewReplacer(
		"@database", quoted(in.Database), "@data", quoted(in.Folder), "@documents",
		quoted("file://"+filepath.ToSlash(filepath.Join(in.Folder, "documents"))),
		"@master", quoted("file:"+filepath.Join(in.Folder, "master.key")), "@public", quoted(public), "@password", password,
		"@simulators", simulators,
	).Replace(configurationText)
}

const configurationText = `{
  // Every key is a flag of the same name; flags and variables (TRIBUTARY_LISTEN)
  // win over this file. Lines that begin with two slashes are comments.

  // What is kept, and where. Back up the master key apart from the database.
  "data": @data,
  "database": @database,
  @password
  "documents": @documents,
  "master-key": @master,

  // Where clients reach the API: the base of every address handed out. Give a
  // certificate here, or put a proxy that ends TLS in front and trust it.
  "public-url": @public,
  "listen": "127.0.0.1:8080",
  // "tls-cert": "/etc/tributary/cert.pem",
  // "tls-key": "/etc/tributary/key.pem",
  // "trust-proxy": true,
@simulators
  // Authorities that live clients file with; each country's page has its addresses.
  // "authority": {"ES.live": "https://www1.agenciatributaria.gob.es"},

  // Console, metrics and health for operators; loopback unless you mean it.
  // "admin-url": "https://console.example.com",
  // "admin-token-file": "/etc/tributary/admin-token",
  "admin": "127.0.0.1:8081"
}
`
