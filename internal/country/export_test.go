package country

// NewClient is the client that packs get.
var NewClient = newClient
